for (const section of document.querySelectorAll(".tree-section")) {
  const form = section.querySelector(".tree-filter");
  const sentences = [...section.querySelectorAll(".tree-sentence")];
  const of = (name) => form.querySelector(".tree-" + name);
  of("longest").value = Math.max(...sentences.map((one) => one.dataset.length));
  const show = () => {
    const system = of("system").value;
    let shown = 0;
    for (const one of sentences) {
      const length = Number(one.dataset.length), f1 = JSON.parse(one.dataset.f1)[system];
      one.hidden = length < of("shortest").value || length > of("longest").value ||
        f1 < of("least").value || f1 > of("most").value;
      shown += !one.hidden;
    }
    of("count").value = `${shown} of ${sentences.length} sentences`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  show();
}
