// SPDX-License-Identifier: BSD-2-Clause
// The table of functions: sorted by a click on (or Enter in) a column's head, some hundred rows at a time.
import { create, select } from "d3-selection";
import { MODES } from "./data.js";

const ROWS_SHOWN = 100;

const counts = new Intl.NumberFormat("en");
const percent = (share) => `${(100 * share).toFixed(2)} %`;
const signed = (share) => `${share > 0 ? "+" : share < 0 ? "−" : ""}${Math.abs(100 * share).toFixed(2)}`;

// sums: of all samples, for each side; fate(row): what has become of it
function columns_for(sums, fate) {
  const share = (row, list, side) => (sums[side] > 0 ? list[side] / sums[side] : 0);
  const number = (title, value, text) => ({ title, value, text: (row) => text(value(row)), is_number: true });
  const words = [
    { title: "Function", value: (row) => row.name, text: (row) => row.name, is_name: true },
    { title: "Module", value: (row) => row.module, text: (row) => row.module },
    { title: "Mode", value: (row) => MODES[row.mode], text: (row) => MODES[row.mode] },
  ];
  if (sums.length === 1) {
    return [
      number("Self", (row) => share(row, row.self, 0), percent),
      number("Total", (row) => share(row, row.total, 0), percent),
      number("Samples", (row) => row.samples[0], (n) => counts.format(n)),
      ...words,
    ];
  }
  return [
    number("Change, points", (row) => share(row, row.self, 1) - share(row, row.self, 0), signed),
    number("Base self", (row) => share(row, row.self, 0), percent),
    number("New self", (row) => share(row, row.self, 1), percent),
    number("Total change, points", (row) => share(row, row.total, 1) - share(row, row.total, 0), signed),
    { title: "", value: fate, text: fate },
    ...words,
  ];
}

export class Table {
  // on.pick(row): a function was chosen; on.centre(row): its callers and callees were; on.fate(row): what is said of one that only one of two recordings has
  constructor(host, on) {
    this.host = host;
    this.on = on;
    this.sorted = { column: 0, descending: true };
    this.shown = ROWS_SHOWN;
  }

  show(rows, sums, matches) {
    Object.assign(this, { rows, matches, columns: columns_for(sums, this.on.fate) });
    this.draw();
  }

  // By how large a change is, whatever its sign.
  order() {
    const { value, is_number } = this.columns[this.sorted.column];
    const sign = this.sorted.descending ? -1 : 1;
    const size = is_number ? (row) => Math.abs(value(row)) : value;
    const rows = this.matches === undefined ? this.rows : this.rows.filter((row) => this.matches[row.frame]);
    return rows.map((row) => [size(row), row])
      .sort(([a, left], [b, right]) => sign * (a < b ? -1 : a > b ? 1 : 0) || (left.name < right.name ? -1 : 1)).map(([, row]) => row);
  }

  sort_by(column) {
    const again = this.sorted.column === column;
    this.sorted = { column, descending: again ? !this.sorted.descending : this.columns[column].is_number === true };
    this.draw();
    this.host.querySelectorAll("th button")[column].focus();
  }

  draw() {
    const order = this.order();
    const table = create("table");
    const heads = table.append("thead").append("tr").selectAll("th").data(this.columns).join("th")
      .classed("number", (column) => column.is_number).attr("scope", "col")
      .attr("aria-sort", (_, i) => (i !== this.sorted.column ? "none" : this.sorted.descending ? "descending" : "ascending"));
    select(heads.node().parentNode).append("td");
    heads.append("button").attr("type", "button").text((column) => column.title || "only in one")
      .on("click", (_, column) => this.sort_by(this.columns.indexOf(column)));
    const body = table.append("tbody").selectAll("tr").data(order.slice(0, this.shown)).join("tr");
    body.selectAll("td").data((row) => this.columns.map((column) => ({ column, row }))).join("td")
      .classed("number", ({ column }) => column.is_number)
      .classed("more", ({ column, row }) => column.text(row).startsWith("+"))
      .classed("less", ({ column, row }) => column.text(row).startsWith("−"))
      .classed("name", ({ column }) => column.is_name)
      .each(function fill({ column, row }) {
        const cell = select(this);
        (column.is_name ? cell.append("button").attr("type", "button").attr("class", "link").attr("title", "search for it") : cell).text(column.text(row));
      });
    body.selectAll("button.link").on("click", (_, { row }) => this.on.pick(row));
    body.append("td").attr("class", "go").append("button").attr("type", "button").attr("class", "callers")
      .attr("title", (row) => `callers and callees of ${row.name}`).attr("aria-label", (row) => `callers and callees of ${row.name}`)
      .text("callers").on("click", (_, row) => this.on.centre(row));
    this.host.replaceChildren(table.node());
    if (order.length > this.shown) this.offer_more(order.length);
  }

  offer_more(n) {
    const button = create("button").attr("type", "button").attr("class", "rest").text(`${this.shown} of ${n} functions; show more`);
    button.on("click", () => {
      this.shown *= 4;
      this.draw();
    });
    this.host.append(button.node());
  }
}
