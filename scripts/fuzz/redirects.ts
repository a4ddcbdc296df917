// Mutated Location headers of hosts, and mutated path templates with paths. They run in this process. The target of a redirect must fit into
// a request, and be the target of its own URL.

import { BatonError } from '../../src/common/errors/errors.js';
import type { Random } from '../../src/common/random.js';
import { headerKey } from '../../src/common/text/header-names.js';
import { HeaderBlock } from '../../src/http/headers/header-block.js';
import { redirectTarget } from '../../src/http/routing/actions/redirect-target.js';
import { UriTemplate } from '../../src/http/routing/matching/uri-template.js';
import { Memory } from '../../src/io/memory.js';
import { mutateBytes } from './mutation.js';
import { Finding, type Scope } from './scope.js';

/** Inputs between two looks at the clock. */
const INPUTS_PER_STEP = 500;
const MAX_INPUT_MS = 1000;
/** As for a head. */
const MAX_VALUE = 60 * 1024;
const LAYOUT = { receiveBytes: 0, scratchBytes: 1024 * 1024, arenaBytes: 1024 * 1024 };
const HOST = headerKey('host');

const bytes = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text, 'latin1'));
const LOCATIONS = bytes(
  'http://a.example:8080/b?c=d#e',
  'HTTPS://user:secret@[::1]:443/x%20y',
  'http://a?b',
  'ftp://a',
);
const TEMPLATES = bytes('/a/{id}/b/{rest=**}', '/c/*/d/{f=e/*}', '/{a}/**.m3u8', '/x');
const TOKENS = bytes(
  '://',
  '//',
  '@',
  ':',
  '[',
  ']',
  '#',
  '?',
  '%',
  '\\',
  '\0',
  '\r\n',
  ' ',
  '\xff',
  '{',
  '}',
  '=',
  '**',
  '*',
);

/** Throws a Finding when a text causes an exception, or is not what it must be. Returns a summary. */
export async function fuzzRedirects(_scope: Scope, random: Random, durationMs: number): Promise<string> {
  const memory = new Memory(LAYOUT);
  const end = performance.now() + durationMs;
  let inputs = 0;
  let targets = 0;
  let templates = 0;
  while (performance.now() < end) {
    for (let left = INPUTS_PER_STEP; left > 0; left--, inputs++) {
      const text = (seeds: Buffer[]) => mutateBytes(random, seeds, TOKENS).toString('latin1').slice(0, MAX_VALUE);
      if (attempt(text(LOCATIONS), (location) => followed(location, memory))) targets++;
      if (attempt(text(TEMPLATES), (template) => compiled(template, text(TEMPLATES)))) templates++;
      memory.endTurn();
    }
    await new Promise(setImmediate);
  }
  return `${inputs} inputs (${targets} targets, ${templates} templates); no defect`;
}

function attempt(input: string, check: (input: string) => boolean): boolean {
  const begin = performance.now();
  try {
    const isValid = check(input);
    const ms = performance.now() - begin;
    if (ms > MAX_INPUT_MS) throw new Error(`it took ${Math.round(ms)} ms`);
    return isValid;
  } catch (error) {
    const text = error instanceof Error ? error.stack : String(error);
    throw new Finding(`${text}\n\nThe input:\n${JSON.stringify(input.slice(0, 2000))}`);
  }
}

/** Returns whether the location has a target. */
function followed(location: string, memory: Memory): boolean {
  // No codec passes these on.
  const target = redirectTarget(location.replace(/[\0\r\n]/g, ''));
  if (target === undefined) return false;
  const { authority, isHttps, path } = target;
  const head = new HeaderBlock(memory);
  head.set(HOST, authority);
  head.setPath(path);
  const again = redirectTarget(`${isHttps ? 'https' : 'http'}://${authority}${path}`);
  if (again?.authority !== authority || again.path !== path || again.isHttps !== isHttps)
    throw new Error('the target has another target');
  return true;
}

/** Returns whether the template is valid. */
function compiled(text: string, path: string): boolean {
  let template: UriTemplate;
  try {
    template = new UriTemplate(text, '');
  } catch (error) {
    if (error instanceof BatonError) return false;
    throw error;
  }
  const groups = template.regex.exec(path);
  if (groups !== null && groups.length !== template.names.length + 1) throw new Error('another number of groups');
  return true;
}
