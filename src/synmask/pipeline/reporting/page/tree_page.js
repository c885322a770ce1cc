{
  const section = document.currentScript.closest(".tree-section");
  const form = section.querySelector(".tree-controls");
  const sentences = [...section.querySelectorAll(".tree-sentence")];
  const of = (name) => form.querySelector(".tree-" + name);
  let listed = sentences, place = 0;
  const show = (to) => {
    place = Math.max(0, Math.min(to, listed.length - 1));
    for (const one of sentences) one.hidden = one !== listed[place];
    if (listed.length) listed[place].open = true;
    of("count").value = listed.length ? `${place + 1} of ${listed.length} sentences` : "no such sentence";
    of("previous").disabled = place === 0;
    of("next").disabled = place >= listed.length - 1;
  };
  const list = () => {
    const system = of("order").value, words = of("search").value.toLowerCase().split(/\s+/);
    const f1 = (one) => JSON.parse(one.dataset.f1)[system];
    const has = (one) => words.every((word) => one.querySelector(".tree-text").textContent.toLowerCase().includes(word));
    listed = sentences.filter(has);
    if (system !== "") listed.sort((one, other) => f1(one) - f1(other));
    show(0);
  };
  of("previous").addEventListener("click", () => show(place - 1));
  of("next").addEventListener("click", () => show(place + 1));
  form.addEventListener("input", list);
  form.addEventListener("submit", (event) => event.preventDefault());
  section.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && !event.target.matches("input, select, .tree-one")) show(place + step);
  });
  // Gold and induced trees scroll together, so that the same words stand below each other.
  section.addEventListener("scroll", ({ target }) => {
    const share = (one) => one.scrollWidth - one.clientWidth;
    for (const one of target.closest(".tree-row")?.querySelectorAll(".tree-one") ?? []) {
      const to = Math.round(target.scrollLeft / share(target) * share(one));
      if (one !== target && Math.abs(one.scrollLeft - to) > 1) one.scrollLeft = to;
    }
  }, true);
  form.hidden = false;
  show(sentences.findIndex((one) => one.open));
}
