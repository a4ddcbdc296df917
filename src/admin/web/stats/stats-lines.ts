// Parses the text form of stats.

export interface StatLine {
  readonly name: string;
  /** A counter's or gauge's value, a text readout's quoted text, or the summary of a histogram. */
  readonly text: string;
  /** Undefined for a text readout; for a histogram the median of all samples. */
  readonly value: number | undefined;
  /** True for a histogram with samples. */
  readonly isHistogram: boolean;
}

/** Parses stats. A histogram's detailed form has several lines, with the further ones indented. */
export function parseLines(text: string): StatLine[] {
  const stats: StatLine[] = [];
  for (const line of text.split('\n')) {
    if (line.startsWith('  ')) {
      const last = stats.pop();
      if (last !== undefined)
        stats.push(statLine(last.name, `${last.text}${last.text === '' ? '' : '\n'}${line.trim()}`));
      continue;
    }
    const colon = nameEnd(line);
    if (colon > 0) stats.push(statLine(line.slice(0, colon), line.slice(colon + 1).trimStart()));
  }
  return stats;
}

/** Returns the end of the name. Names may contain colons, but not followed by a space. */
function nameEnd(line: string): number {
  const colon = line.indexOf(': ');
  return colon < 0 && line.endsWith(':') ? line.length - 1 : colon;
}

function statLine(name: string, text: string): StatLine {
  if (/^\d+$/.test(text)) return { name, text, value: Number(text), isHistogram: false };
  const isHistogram = /^(?:P0\(|B[\d.e+]+\(|totals=)/.test(text);
  const median = /\bP50\([^,]*,([^)]*)\)/.exec(text);
  return { name, text, value: median === null ? undefined : Number(median[1]), isHistogram };
}
