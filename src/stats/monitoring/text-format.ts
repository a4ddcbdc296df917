// The text exposition format 0.0.4, with the details of FACTS §3.6.

import { type Distribution, QUANTILES } from '../histograms/distribution.js';
import type { Pieces } from '../render/pieces.js';
import type { Tag } from '../tags.js';
import type { FamilyHead, HistogramSample, MonitoringFormat } from './format.js';
import { escapeValue, formatExact, formatPlain, labelsOf } from './names.js';

export interface TextFormatOptions {
  readonly histograms: 'cumulative' | 'summary' | 'native';
}

const NEWLINE = 10;

export class TextFormat implements MonitoringFormat {
  readonly needsBytes = false;
  readonly #isSummary: boolean;
  #lastTags: readonly Tag[] | undefined;
  #lastLabels: Uint8Array = new Uint8Array();

  constructor(options: TextFormatOptions) {
    this.#isSummary = options.histograms === 'summary';
  }

  putHead(out: Pieces, { name, type }: FamilyHead): void {
    out.putText(`# TYPE ${name} ${type}\n`);
  }

  putValue(out: Pieces, family: FamilyHead, tags: readonly Tag[], value: number): void {
    if (tags !== this.#lastTags) {
      this.#lastTags = tags;
      this.#lastLabels = Buffer.from(`{${labelsText(tags)}} `);
    }
    out.put(family.bytes);
    out.put(this.#lastLabels);
    out.putCount(value);
    out.putByte(NEWLINE);
  }

  putText(out: Pieces, { name }: FamilyHead, tags: readonly Tag[], text: string): void {
    out.putText(`${name}{${labelsBefore(tags, 'text_value')}text_value="${escapeValue(text)}"} 0\n`);
  }

  putHistogram(out: Pieces, { name }: FamilyHead, tags: readonly Tag[], sample: HistogramSample): void {
    const { value, scale } = sample;
    const samples = this.#isSummary ? value?.interval : value?.cumulative;
    const count = samples?.count() ?? 0;
    const own = this.#isSummary ? 'quantile' : 'le';
    const before = labelsBefore(tags, own);
    let text = this.#isSummary
      ? quantilesText(name, before, samples, scale)
      : bucketsText(name, before, samples, count, sample);
    const labels = labelsText(tags, own);
    text += `${name}_sum{${labels}} ${formatExact((samples?.sum() ?? 0) / scale)}\n${name}_count{${labels}} ${count}\n`;
    out.putText(text);
  }
}

function bucketsText(
  name: string,
  labels: string,
  samples: Distribution | undefined,
  count: number,
  { bounds, scale }: HistogramSample,
): string {
  const counts = samples?.countsBelow(bounds.map((bound) => bound * scale));
  let text = '';
  for (let i = 0; i < bounds.length; i++) {
    text += `${name}_bucket{${labels}le="${formatPlain(bounds[i]!)}"} ${counts?.[i] ?? 0}\n`;
  }
  return `${text}${name}_bucket{${labels}le="+Inf"} ${count}\n`;
}

function quantilesText(name: string, labels: string, samples: Distribution | undefined, scale: number): string {
  const values = samples?.quantiles(QUANTILES);
  return QUANTILES.map(
    (share, i) => `${name}{${labels}quantile="${share}"} ${formatExact((values?.[i] ?? Number.NaN) / scale)}\n`,
  ).join('');
}

/** Returns the text between the braces, without the label `own`. */
function labelsText(tags: readonly Tag[], own = ''): string {
  return labelsOf(tags, own)
    .map(({ name, value }) => `${name}="${escapeValue(value)}"`)
    .join(',');
}

/** Returns the labels with a comma after them, to be followed by `own`. */
function labelsBefore(tags: readonly Tag[], own: string): string {
  const text = labelsText(tags, own);
  return text === '' ? '' : `${text},`;
}
