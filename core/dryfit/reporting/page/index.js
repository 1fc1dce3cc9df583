"use strict";
// Sorting by columns and filtering of the models. Without this script the table is complete, in the given order.
{
  const table = document.getElementById("models");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const filter = document.getElementById("filter");
  const changed = document.getElementById("changed");
  const failing = document.getElementById("failing");

  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
  };

  const show = () => {
    const wanted = filter.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted)
        || (changed.checked && row.dataset.changed === "0")
        || (failing.checked && row.dataset.builds === "1");
      shown += row.hidden ? 0 : 1;
    }
    document.getElementById("count").textContent = `${shown} of ${rows.length}`;
  };

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const isUp = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", isUp ? "ascending" : "descending");
      const sign = isUp ? 1 : -1;
      rows.sort((one, other) => {
        const [a, b] = [valueOf(one, column), valueOf(other, column)];
        return sign * (a < b ? -1 : a > b ? 1 : 0);
      });
      body.append(...rows);
    });
  });
  for (const input of [filter, changed, failing]) input.addEventListener("input", show);
  document.getElementById("filters").hidden = false;
  show();
}
