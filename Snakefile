# Build a target: `snakemake TARGET`, where TARGET is an experiment or a table (default: its `targets`).
import gc

from snakemake.utils import min_version

min_version("9.27")
gc.disable()  # until jobs start: a plan is millions of objects, none garbage, and looking for it takes a sixth of the time


include: "workflow/rules/preflight.smk"
include: "workflow/rules/common.smk"


if not CONFIG.partial:  # else there is nothing that could start a training

    include: "workflow/rules/corpus.smk"
    include: "workflow/rules/subwords.smk"
    include: "workflow/rules/syntax.smk"
    include: "workflow/rules/train.smk"
    include: "workflow/rules/decode.smk"
    include: "workflow/rules/templates.smk"
    include: "workflow/rules/parse.smk"
    include: "workflow/rules/weights.smk"
    include: "workflow/rules/nlu.smk"
    include: "workflow/rules/nlu_syntax.smk"


include: "workflow/rules/tables.smk"
include: "workflow/rules/report.smk"


for name, files in TARGETS.by_name():
    PLANNED.check_free(name)

    rule:
        name:
            name
        default_target: name == "all"
        input:
            partial(listed, files),
        localrule: True


# All steps run in one environment, unless a rule names another.
for step in workflow.rules:
    if step.conda_env is None and not step.norun:
        # not a relative name: each rule takes that from its own file's folder
        step.conda_env = os.path.abspath("workflow/envs/synmask.yaml")


onstart:
    gc.enable()
    if not workflow.resource_settings.cores and workflow.local_exec:
        sys.exit("--cores 0: no job can start; give --cores 1 or more")
    PLANNED.check_nodes()
    sources.keep_records()  # what results are made from
    for message in filter(None, [PLANNED.half_done(), PLANNED.unrecorded()]):
        logger.warning(message)
