// Sorting of every table with a head, and the filter of all claims, which is kept in the address so that it can be linked.
document.addEventListener("DOMContentLoaded", () => {
  const number = (text) => parseFloat(text.replace("−", "-").replaceAll(",", ""));
  const read = (row, i) => row.cells[i]?.dataset.value ?? row.cells[i]?.textContent.trim() ?? "";
  for (const table of document.querySelectorAll(".bd-article table")) {
    const body = table.tBodies[0];
    if (!table.tHead || body.rows.length < 2) continue;
    // A row with a label alone is the heading of a group: sorted rows have no groups.
    const rows = [...body.rows], isGroup = (row) => row.cells.length > 2 && [...row.cells].slice(1).every((cell) => !cell.textContent.trim());
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      const values = rows.map((row) => read(row, i)).filter((text) => text);
      if (!values.length) return;
      const numeric = values.filter((text) => !isNaN(number(text))).length > values.length / 2;
      head.tabIndex = 0;
      head.classList.add("sorts");
      const sort = () => {
        const ascending = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "descending" : !numeric;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
        const sign = ascending ? 1 : -1;
        const compare = (a, b) => {
          if (!numeric) return sign * read(a, i).localeCompare(read(b, i));
          const [x, y] = [number(read(a, i)), number(read(b, i))];
          return isNaN(x) - isNaN(y) || sign * (x - y) || 0; // without a value: last, either way
        };
        for (const row of rows.filter(isGroup)) row.remove();
        body.append(...rows.filter((row) => !isGroup(row)).sort(compare));
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
  }
  const form = document.getElementById("filters");
  if (!form) return;
  const rows = [...document.getElementById("claims").tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
  const asked = new URLSearchParams(location.search), choices = ["paper", "role", "kind"];
  for (const name of [...choices, "q"]) if (asked.has(name)) form.elements[name].value = asked.get(name);
  const boxes = [...form.querySelectorAll("[name=verdict]")];
  if (asked.has("verdict")) for (const box of boxes) box.checked = asked.getAll("verdict").includes(box.value);
  const show = () => {
    const words = form.elements.q.value.toLowerCase().split(/\s+/);
    const verdicts = boxes.filter((box) => box.checked).map((box) => box.value);
    for (const [row, text] of rows) {
      const chosen = choices.every((name) => [row.dataset[name], ""].includes(form.elements[name].value));
      row.hidden = !(chosen && verdicts.includes(row.dataset.verdict) && words.every((word) => text.includes(word)));
    }
    document.getElementById("shown").textContent = `${rows.filter(([row]) => !row.hidden).length} of ${rows.length}`;
    const kept = new URLSearchParams(verdicts.length < boxes.length ? verdicts.map((verdict) => ["verdict", verdict]) : []);
    for (const name of [...choices, "q"]) if (form.elements[name].value) kept.set(name, form.elements[name].value);
    history.replaceState(null, "", kept.size ? "?" + kept : location.pathname);
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
});
