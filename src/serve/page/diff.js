/*
 * A diff as coloured lines. A line that a file holds may look like a header ("--- a/x" removed is
 * "---- a/x", but "-- x" removed is "--- x"), so what is inside a hunk is known by the hunk's own
 * counts and not by its looks.
 */
import { Rows } from "./rows.js";
import { byId, setText, visible } from "./text.js";

const LINES_MAX = 500_000;
const LINE_MAX = 2000;
const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;
const KINDS = { "+": "added", "-": "removed", " ": "same", "\\": "note" };

/** @param {string} text */
export function readDiff(text) {
  const lines = [];
  let old = 0;
  let now = 0;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    if (lines.length === LINES_MAX) {
      lines.push({ kind: "note", text: "More lines are not shown here." });
      break;
    }
    const hunk = old <= 0 && now <= 0 && HUNK.exec(line);
    let kind = "head";
    if (hunk) {
      old = Number(hunk[1] ?? 1);
      now = Number(hunk[2] ?? 1);
      kind = "hunk";
    } else if (line.startsWith("\\ ")) {
      kind = "note";
    } else if (old > 0 || now > 0) {
      kind = KINDS[line[0]] ?? "same";
      if (kind !== "added") old--;
      if (kind !== "removed") now--;
    } else if (/^[A-Z] /.test(line)) {
      kind = "file";
    }
    lines.push({ kind, text: line.length > LINE_MAX ? `${line.slice(0, LINE_MAX)} … ${line.length - LINE_MAX} characters more` : line });
  }
  return lines;
}

export class Diff {
  constructor() {
    this.rows = new Rows(byId("diff"), (node, line) => {
      node.className = `line ${line.kind}`;
      node.textContent = visible(line.text);
    });
  }

  /** @param {string} text @param {string} said beside it */
  show(text, said) {
    const lines = text ? readDiff(text) : [];
    byId("diff").hidden = lines.length === 0;
    setText(byId("changes-said"), said);
    this.rows.replace(lines);
    byId("diff").scrollTop = 0;
  }
}
