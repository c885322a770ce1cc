{
  const section = document.currentScript.closest(".tree-section");
  const form = section.querySelector(".tree-controls");
  const sentences = [...section.querySelectorAll(".tree-sentence")];
  const of = (name) => form.querySelector(".tree-" + name);
  let place = 0;
  const show = (to) => {
    place = Math.max(0, Math.min(to, sentences.length - 1));
    for (const one of sentences) one.hidden = one !== sentences[place];
    if (sentences.length) sentences[place].open = true;
    of("count").value = `Sentence ${place + 1} of ${sentences.length}`;
    of("previous").disabled = place === 0;
    of("next").disabled = place >= sentences.length - 1;
  };
  of("previous").addEventListener("click", () => show(place - 1));
  of("next").addEventListener("click", () => show(place + 1));
  section.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && !event.target.matches(".tree-one")) show(place + step);
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
