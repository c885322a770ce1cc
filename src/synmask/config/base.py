"""What all sections of config.yaml have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Rate = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
