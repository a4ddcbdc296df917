// Mutated xdstp names, as management servers send them and as clients name clusters on demand. They run in this process.

import type { Random } from '../../src/common/random.js';
import { canonicalXdstp, collectionOf, isGlob, parseXdstp } from '../../src/config/fields/xdstp-name.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_INPUT_MS = 1000;

const SEEDS = [
  'xdstp://server/envoy.config.cluster.v3.Cluster/mesh/a',
  'xdstp:///envoy.config.listener.v3.Listener/*',
  'xdstp://server/envoy.config.cluster.v3.Cluster/mesh/*?shard=1&xds.node.cluster=a%26b',
  'xdstp://server/envoy.config.route.v3.RouteConfiguration/routes?z=%C3%BC&a#entry=b',
].map((text) => Buffer.from(text));
const TOKENS = ['xdstp://', '/', '/*', '*', '?', '&', '=', '#', '%', '%2', '%00', '%25', '%ff', '[', ']', '~', 'ü'].map(
  (text) => Buffer.from(text),
);

/** Throws a Finding when a name causes an exception, takes long, has several canonical forms, or is in a collection that is none. */
export async function fuzzXdstpNames(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const end = performance.now() + durationMs;
  let inputs = 0;
  let names = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const text = mutateBytes(random, SEEDS, TOKENS).toString(random.below(2) === 0 ? 'utf8' : 'latin1');
      if (attempt(text)) names++;
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${names} names); no defect`;
}

/** Returns whether the text is a name. */
function attempt(text: string): boolean {
  const begin = performance.now();
  try {
    const isName = check(text);
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
    return isName;
  } catch (error) {
    throw new Finding(`${(error as Error).stack} for ${JSON.stringify(text.slice(0, 2000))}`);
  }
}

function check(text: string): boolean {
  const parsed = parseXdstp(text);
  const form = canonicalXdstp(text);
  const collection = collectionOf(text);
  if (parsed === undefined) {
    if (form !== text || collection !== undefined)
      throw new Error('it is no name, but has another form or a collection');
    return false;
  }
  const again = parseXdstp(form);
  if (again === undefined || canonicalXdstp(form) !== form) throw new Error(`its form ${form} has another one`);
  if (isGlob(again) !== isGlob(parsed)) throw new Error(`its form ${form} is another kind of name`);
  const folder = parseXdstp(collection!);
  if (folder === undefined || !isGlob(folder)) throw new Error(`its collection ${collection} is none`);
  if (collectionOf(collection!) !== collection) throw new Error(`its collection ${collection} is in another one`);
  if (collectionOf(form) !== collection) throw new Error(`its form ${form} is in another collection`);
  return true;
}
