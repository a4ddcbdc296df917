// Reads both the stats and the access logs of a Baton, for tests that compare the two.

import { readFileSync } from 'node:fs';
import type { BatonProcess, Config } from '../harness/index.js';
import { fileAccessLog } from '../harness/index.js';

const OPERATORS = {
  code: '%RESPONSE_CODE%',
  details: '%RESPONSE_CODE_DETAILS%',
  flags: '%RESPONSE_FLAGS%',
  received: '%BYTES_RECEIVED%',
  sent: '%BYTES_SENT%',
  cluster: '%UPSTREAM_CLUSTER%',
  attempts: '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
  termination: '%CONNECTION_TERMINATION_DETAILS%',
  /** '-' if the request did not arrive whole. */
  requestDuration: '%REQUEST_DURATION%',
  /** Only requests with a readable header section have one. */
  requestId: '%REQ(X-REQUEST-ID)%',
} as const;

/** A line of accountLog(): the values of its operators. */
export type Line = Record<keyof typeof OPERATORS, string>;

export function accountLog(path: string): Config {
  return fileAccessLog(path, `${Object.values(OPERATORS).join('\t')}\n`);
}

/** Returns the lines of such a log. Throws on an incomplete one. */
export function readLines(path: string): Line[] {
  const names = Object.keys(OPERATORS);
  const texts = readFileSync(path, 'latin1').split('\n').slice(0, -1);
  return texts.map((text) => {
    const values = text.split('\t');
    if (values.length !== names.length) throw new Error(`an odd line: ${JSON.stringify(text)}`);
    return Object.fromEntries(names.map((name, index) => [name, values[index]])) as Line;
  });
}

export function hasFlag(flag: string): (line: Line) => boolean {
  return ({ flags }) => flags.split(',').includes(flag);
}

export function sumOf(lines: readonly Line[], what: 'received' | 'sent' | 'attempts'): number {
  return lines.reduce((sum, line) => sum + Number(line[what]), 0);
}

/** Returns the sample count of each histogram as of the last flush, by its Prometheus name with labels. */
export async function readSamples(baton: BatonProcess): Promise<ReadonlyMap<string, number>> {
  const { body } = await baton.admin('/stats/monitoring');
  const counts = body.matchAll(/^(\S+)_count(\{\S*\}) (\d+)$/gm);
  return new Map(Array.from(counts, ([, name, labels, count]) => [`${name}${labels}`, Number(count)]));
}

/** Returns the sum of a stat over the hosts of a cluster, as /clusters shows it. */
export async function sumOverHosts(baton: BatonProcess, cluster: string, stat: string): Promise<number> {
  const { body } = await baton.admin('/clusters');
  const values = body.matchAll(new RegExp(`^${cluster}::[^:]+:[0-9]+::${stat}::([0-9]+)$`, 'gm'));
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}
