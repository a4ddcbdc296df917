// A thread's own range for hot paths: records samples, and creates the histograms and names of traffic.

import { BINS_PER_DECADE, DECADES, decadeOf, stepOf, TENS } from '../histograms/bins.js';
import { Kind, type Unit } from '../layout.js';
import {
  DECADE_HEAD,
  HistogramRecord,
  NAMED_TEXT,
  NamedRecord,
  RANGE_MASK,
  RANGE_SHIFT,
  RecordType,
} from './format.js';
import { RangeWriter } from './range.js';

const DECADE_SLOTS = DECADE_HEAD + BINS_PER_DECADE;
const HISTOGRAM_SLOTS = HistogramRecord.Decades + DECADES;

/** Units by their number in a Named record. */
export const UNITS: readonly Unit[] = ['none', 'ms', 'us', 'bytes', 'percent'];

export class ThreadRange extends RangeWriter {
  /** Records a sample of the histogram at `histogram`. */
  record(histogram: number, value: number): void {
    const slots = this.slots[histogram >>> RANGE_SHIFT]!;
    const at = histogram & RANGE_MASK;
    const whole = value | 0;
    if (whole === value && whole >= 0 && whole < 10) {
      slots[at + HistogramRecord.Digits + whole]!++;
    } else if (whole >= 10 && whole < 100) {
      const decade = slots[at + HistogramRecord.Decades + TENS]!;
      if (decade === 0) {
        if (!this.#recordInNewDecade(histogram, TENS, whole - 10)) return;
      } else {
        this.slots[decade >>> RANGE_SHIFT]![(decade & RANGE_MASK) + DECADE_HEAD + whole - 10]!++;
      }
    } else if (!this.#recordOther(histogram, value)) return;
    slots[at + HistogramRecord.Count]!++;
  }

  /** Allocates a histogram; returns 0 if there is no room. */
  newHistogram(): number {
    const place = this.allocate(HISTOGRAM_SLOTS, RecordType.Histogram);
    if (place !== 0) this.commit(place);
    return place;
  }

  /** Frees the histogram and its decades. */
  freeHistogram(place: number): void {
    for (let decade = 0; decade < DECADES; decade++) {
      const at = this.slot(place, HistogramRecord.Decades + decade);
      if (at !== 0) this.free(at);
    }
    this.free(place);
  }

  /** Allocates a name; returns 0 if there is no room. */
  newName(prefix: string, name: string, kind: Kind, unit: Unit): number {
    const prefixBytes = Buffer.byteLength(prefix);
    const nameBytes = Buffer.byteLength(name);
    const place = this.allocate(NAMED_TEXT + ((prefixBytes + nameBytes + 7) >> 3), RecordType.Named);
    if (place === 0) return 0;
    this.setWord(place, NamedRecord.KindWord, kind);
    this.setWord(place, NamedRecord.UnitWord, UNITS.indexOf(unit));
    this.setWord(place, NamedRecord.PrefixBytesWord, prefixBytes);
    this.setWord(place, NamedRecord.NameBytesWord, nameBytes);
    this.setText(place, NAMED_TEXT, 0, prefix);
    this.setText(place, NAMED_TEXT, prefixBytes, name);
    this.commit(place);
    return place;
  }

  /** Reclaims a name that the primary has freed: its record and its histogram can be reused. */
  reclaimName(place: number): void {
    if (this.word(place, NamedRecord.KindWord) === Kind.Histogram) {
      const histogram = this.slot(place, NamedRecord.Value);
      this.setSlot(place, NamedRecord.Value, 0);
      if (histogram !== 0) this.freeHistogram(histogram);
    }
    this.reuse(place);
  }

  #recordOther(histogram: number, value: number): boolean {
    if (!(value >= 0.01)) {
      this.slots[histogram >>> RANGE_SHIFT]![(histogram & RANGE_MASK) + HistogramRecord.Digits]!++;
      return true;
    }
    const index = decadeOf(value);
    const step = stepOf(value, index);
    const decade = this.slot(histogram, HistogramRecord.Decades + index);
    if (decade === 0) return this.#recordInNewDecade(histogram, index, step);
    this.slots[decade >>> RANGE_SHIFT]![(decade & RANGE_MASK) + DECADE_HEAD + step]!++;
    return true;
  }

  #recordInNewDecade(histogram: number, index: number, step: number): boolean {
    const decade = this.allocate(DECADE_SLOTS, RecordType.Decade);
    if (decade === 0) return false;
    this.setSlot(decade, DECADE_HEAD + step, 1);
    this.commit(decade);
    this.setSlot(histogram, HistogramRecord.Decades + index, decade);
    return true;
  }
}
