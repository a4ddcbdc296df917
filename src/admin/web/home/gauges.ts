// The figures at the top of the home page: traffic, connections, errors, times and memory, each with its recent history.

import { el, setText } from '../dom.js';
import { type Bin, drawHistogram, mergeBins, quantile } from '../histogram.js';
import { bytesText, countText, figureText, rateText } from '../numbers.js';
import { Rates, Series } from '../series.js';
import type { Stats } from '../stats-json.js';
import { Sparkline } from './sparkline.js';

/** Number of values in a sparkline. */
const LENGTH = 60;

/** The stats used by the gauges and the listeners. */
export const GAUGE_STATS =
  '^(http\\..+\\.downstream_(rq_total|rq_5xx|rq_time)|listener\\..+\\.downstream_cx_(active|total)' +
  '|listener_manager\\.(total_.+|listener_stopped)|server\\.(memory_physical_size|live))$';

export class Gauges {
  readonly #rates = new Rates();
  readonly #requests: Gauge;
  readonly #errors: Gauge;
  readonly #connections: Gauge;
  readonly #memory: Gauge;
  readonly #times: Card;

  constructor(section: HTMLElement) {
    this.#requests = new Gauge('requests', 'Requests');
    this.#connections = new Gauge('connections', 'Connections');
    this.#errors = new Gauge('errors', 'Server errors (5xx)');
    this.#times = new Card('times', 'Request time (median)');
    this.#memory = new Gauge('memory', 'Memory');
    for (const { element } of [this.#requests.card, this.#connections.card, this.#errors.card]) section.append(element);
    section.append(this.#times.element, this.#memory.card.element);
    section.hidden = false;
  }

  update({ values, histograms }: Stats): void {
    const sum = (pattern: RegExp) => {
      let total = 0;
      for (const [name, value] of values) if (pattern.test(name) && !isIgnored(name)) total += Number(value);
      return total;
    };
    this.#rates.begin(performance.now());
    const requests = sum(/^http\..+\.downstream_rq_total$/);
    this.#requests.show(this.#rates.read('requests', requests), rateText, `${countText(requests)} in all`);
    const errors = sum(/^http\..+\.downstream_rq_5xx$/);
    this.#errors.show(this.#rates.read('errors', errors), rateText, `${countText(errors)} in all`);
    const accepted = this.#rates.read('accepted', sum(/^listener\..+\.downstream_cx_total$/));
    const active = sum(/^listener\..+\.downstream_cx_active$/);
    this.#connections.show(active, countText, `${rateText(accepted)} new`);
    const memory = values.get('server.memory_physical_size');
    if (memory !== undefined) this.#memory.show(Number(memory), bytesText, 'physical');
    this.#showTimes(
      histograms.filter(({ name }) => !isIgnored(name)),
      requests > 0,
    );
  }

  #showTimes(histograms: Stats['histograms'], hasRequests: boolean): void {
    const recent = mergeBins(histograms.map(({ intervals }) => intervals));
    const isRecent = recent.length > 0;
    const bins = isRecent ? recent : mergeBins(histograms.map(({ totals }) => totals));
    const middle = quantile(bins, 0.5);
    const most = quantile(bins, 0.99);
    const none = hasRequests ? 'known after the next flush' : 'no requests yet';
    this.#times.show(
      middle === undefined ? '–' : `${figureText(middle)} ms`,
      most === undefined ? none : `99 % in ${figureText(most)} ms, ${isRecent ? 'lately' : 'since the start'}`,
    );
    this.#draw(bins);
  }

  #draw(bins: readonly Bin[]): void {
    this.#times.picture.replaceChildren(...[drawHistogram(bins)].filter((drawing) => drawing !== undefined));
  }
}

/**
 * Returns whether to ignore a stat: those of the admin interface, and those that count again per thread or per kind of
 * client.
 */
function isIgnored(name: string): boolean {
  if (/^(?:http|listener)\.admin\./.test(name)) return true;
  return /\.(?:worker_\d+|main_thread)\.downstream_cx_|\.user_agent\.(?:ios|android)\.downstream_/.test(name);
}

/** A figure with a title, a remark and a picture. */
class Card {
  readonly element: HTMLElement;
  readonly picture = el('div', { class: 'picture' });
  readonly #value: HTMLElement;
  readonly #remark = el('p', { class: 'remark' });

  constructor(id: string, title: string) {
    this.#value = el('p', { class: 'value', id: `gauge-${id}` }, '–');
    this.element = el('div', { class: 'card' }, el('h2', {}, title), this.#value, this.#remark, this.picture);
  }

  show(value: string, remark: string): void {
    setText(this.#value, value);
    setText(this.#remark, remark);
  }
}

/** A card whose picture shows its recent values. */
class Gauge {
  readonly card: Card;
  readonly #series = new Series(LENGTH);
  readonly #line = new Sparkline(LENGTH);

  constructor(id: string, title: string) {
    this.card = new Card(id, title);
    this.card.picture.append(this.#line.element);
  }

  show(value: number | undefined, text: (value: number) => string, remark: string): void {
    this.card.show(value === undefined ? '–' : text(value), remark);
    if (value === undefined) return;
    this.#series.add(value);
    this.#line.update(this.#series.values);
  }
}
