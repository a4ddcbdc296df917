// A line of the recent values of a figure.

import { svg } from '../dom.js';

const WIDTH = 120;
const HEIGHT = 32;

export class Sparkline {
  readonly element: SVGSVGElement;
  readonly #length: number;
  readonly #line = svg('polyline', { class: 'line' });
  readonly #area = svg('polygon', { class: 'area' });

  /** `length`: number of values that fill it. */
  constructor(length: number) {
    this.#length = length;
    this.element = svg(
      'svg',
      { class: 'sparkline', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
      this.#area,
      this.#line,
    );
  }

  /** Draws values from the oldest to the newest, which is at the right end; 0 is the bottom. */
  update(values: readonly number[]): void {
    const max = Math.max(...values, Number.MIN_VALUE);
    const step = WIDTH / (this.#length - 1);
    const left = WIDTH - (values.length - 1) * step;
    const points = values.map((value, index) => {
      const y = HEIGHT - 2 - (value / max) * (HEIGHT - 4);
      return `${round(left + index * step)},${round(y)}`;
    });
    this.#line.setAttribute('points', points.join(' '));
    this.#area.setAttribute('points', `${round(left)},${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`);
  }
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
