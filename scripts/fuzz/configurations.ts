// Mutated configurations: the loader refuses or accepts them, and never throws; the program can serve accepted ones.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { packagePath } from '../../src/common/package/package-root.js';
import type { Random } from '../../src/common/random.js';
import { ExtensionCatalog } from '../../src/config/catalog/extension.js';
import { loadConfiguration } from '../../src/config/load/load.js';
import { formatProblems } from '../../src/config/text/problem.js';
import { EXTENSIONS } from '../../src/extensions/index.js';
import { CONFIGURATION_CHECKS } from '../../src/server/configuration/configuration-checks.js';
import {
  type BatonProcess,
  httpRequest,
  startBaton,
  tempDir,
  waitFor,
  withDeadline,
} from '../../test/e2e/harness/index.js';
import { mutateConfiguration, pick } from './mutation.js';
import { repeatedMistakes } from './repeated-mistakes.js';
import { defectIn, Finding, Scope } from './scope.js';

const EXAMPLES = [
  'examples/quickstart.yaml',
  'examples/front-proxy.yaml',
  'examples/tcp-proxy.yaml',
  'examples/filter-chains.yaml',
  'examples/error-pages.yaml',
  'examples/health-checks.yaml',
  'examples/fault.yaml',
  'examples/local-ratelimit.yaml',
  'examples/access-control.yaml',
  'examples/sticky-sessions.yaml',
];
/** The share of time for starting the program, which takes a hundred times as long as loading. */
const PROGRAM_SHARE = 0.5;
/** The share of time for files with very many errors, which take long to read. */
const LARGE_SHARE = 0.2;
/** The CPU time that such a file may take: if the time were quadratic in the errors, it would be minutes. */
const LARGE_CPU_S = 15;
const DEADLINE_MS = 15_000;
/** A hundred problems with two lines each. */
const MAX_SHOWN = 300_000;

/** Throws a Finding when a configuration causes an exception. Returns a summary. */
export async function fuzzConfigurations(scope: Scope, random: Random, durationMs: number): Promise<string> {
  const seeds = EXAMPLES.map((path) => confine(parse(readFileSync(packagePath(path), 'utf8'))));
  const catalog = new ExtensionCatalog(EXTENSIONS);
  const end = performance.now() + durationMs;
  const start = performance.now();
  let programMs = 0;
  let accepted = 0;
  let refused = 0;
  let served = 0;
  let validated = 0;
  let largeMs = 0;
  let large = 0;
  const folder = tempDir(scope);
  while (performance.now() < end) {
    const text = JSON.stringify(confine(mutateConfiguration(random, pick(random, seeds))));
    const isAccepted = load(text, catalog);
    if (isAccepted) accepted++;
    else refused++;
    if (largeMs <= (performance.now() - start) * LARGE_SHARE) {
      const begun = performance.now();
      loadLarge(random, folder, catalog);
      largeMs += performance.now() - begun;
      large++;
    }
    const now = performance.now();
    if (programMs > (now - start) * PROGRAM_SHARE) continue;
    // Both in turn, because few configurations stay valid.
    if (isAccepted && served <= 4 * validated + 4) {
      await serve(text);
      served++;
    } else if (!isAccepted && validated < served / 4) {
      await validate(text);
      validated++;
    }
    programMs += performance.now() - now;
  }
  const small = `${accepted} accepted (${served} served), ${refused} refused (${validated} by the program)`;
  return `${small}, ${large} with very many mistakes; no defect`;
}

/** Checks that the time for a file with very many errors is proportional to its length, and that the output is bounded. */
function loadLarge(random: Random, folder: string, catalog: ExtensionCatalog): void {
  const { text, extension } = repeatedMistakes(random);
  const path = join(folder, `large${extension}`);
  writeFileSync(path, text);
  const begun = process.cpuUsage();
  let shown = '';
  try {
    const result = loadConfiguration({ path }, catalog, CONFIGURATION_CHECKS);
    shown = result.ok ? '' : formatProblems(result.errors);
  } catch (error) {
    if (!(error instanceof RangeError)) throw new Finding(`the loader threw ${String(error)}\n\n${text.slice(0, 500)}`);
  }
  const cpuS = process.cpuUsage(begun).user / 1e6;
  if (cpuS > LARGE_CPU_S) throw new Finding(`it took ${cpuS} s\n\n${text.slice(0, 500)}`);
  if (shown.length > MAX_SHOWN) throw new Finding(`${shown.length} characters are shown\n\n${text.slice(0, 500)}`);
}

/** Returns whether the configuration is accepted. */
function load(text: string, catalog: ExtensionCatalog): boolean {
  try {
    const result = loadConfiguration({ yaml: text }, catalog, CONFIGURATION_CHECKS);
    if (result.ok) return true;
    const message = formatProblems(result.errors);
    if (message === '' || /\bundefined\b|\[object /.test(message)) throw new Finding(`${message}\n\n${text}`);
    return false;
  } catch (error) {
    if (error instanceof Finding) throw error;
    throw new Finding(`the loader threw ${error instanceof Error ? error.stack : String(error)}\n\n${text}`);
  }
}

/** Checks that the program refuses with status 1 and a message. */
async function validate(text: string): Promise<void> {
  await inScope(async (scope) => {
    const baton = await startBaton(scope, { config: text, args: ['--mode', 'validate'], wait: 'spawned' });
    const { code } = await withDeadline(baton.exited, 'the end of a validation', DEADLINE_MS);
    const defect = defectIn(baton.stderr);
    if (code !== 1 || defect !== undefined) throw new Finding(`status ${code}: ${defect ?? baton.stderr}\n\n${text}`);
  });
}

/**
 * Checks that the program serves, or reports an unavailable address: all other errors are found earlier. Then it must end in
 * an orderly way.
 */
async function serve(text: string): Promise<void> {
  await inScope(async (scope) => {
    const resolvConf = join(tempDir(scope), 'resolv.conf');
    // No DNS server answers, so names of mutated clusters are not looked up elsewhere.
    writeFileSync(resolvConf, 'nameserver 127.0.0.1:1\n');
    const baton = await startBaton(scope, {
      config: text,
      nodeArgs: ['--import', new URL('../../test/e2e/clusters/resolv-conf.js', import.meta.url).href],
      env: { BATON_TEST_RESOLV_CONF: resolvConf },
      wait: 'spawned',
    });
    const fail = (what: string): never => {
      throw new Finding(`${what}\n${defectIn(baton.stderr) ?? baton.stderr}\n\n${text}`);
    };
    await waitFor(() => isUp(baton), { deadlineMs: DEADLINE_MS }).catch(() => fail('it does not start'));
    if (baton.exit === undefined) baton.child.kill('SIGTERM');
    const { code, signal } = await withDeadline(baton.exited, 'the end of a server', DEADLINE_MS).catch(() =>
      fail('it does not end'),
    );
    const isExplained = code === 1 && /\[critical\].*cannot listen on/.test(baton.stderr);
    if ((code !== 0 && !isExplained) || signal !== null) fail(`it ended with status ${code}, signal ${signal}`);
    if (defectIn(baton.stderr) !== undefined) fail('its log shows a defect');
  });
}

/** Returns whether it is live or has ended; without an admin interface, whether its workers are being started. */
async function isUp(baton: BatonProcess): Promise<boolean> {
  if (baton.exit !== undefined) return true;
  if (!baton.stderr.includes('starting workers')) return false;
  const [, host, port] = /admin address: \[?(.*?)\]?:(\d+)$/m.exec(baton.stderr) ?? [];
  return host === undefined || (await httpRequest(Number(port), '/ready', { host })).status === 200;
}

async function inScope(action: (scope: Scope) => Promise<void>): Promise<void> {
  const scope = new Scope();
  try {
    await action(scope);
  } finally {
    await scope.end();
  }
}

/** Replaces listen ports by system-chosen ones, and puts files in the working directory. */
function confine(bootstrap: unknown): unknown {
  const { admin, static_resources: resources, ...rest } = bootstrap as Record<string, unknown>;
  const confined: Record<string, unknown> = { ...rest };
  if (admin !== undefined) confined.admin = confineValue(admin, true);
  if (isRecord(resources)) {
    const { listeners, ...others } = resources;
    confined.static_resources = { ...(confineValue(others, false) as object) };
    if (listeners !== undefined) {
      (confined.static_resources as Record<string, unknown>).listeners = confineValue(listeners, true);
    }
  } else if (resources !== undefined) confined.static_resources = resources;
  return confined;
}

function confineValue(value: unknown, listens: boolean): unknown {
  if (Array.isArray(value)) return value.map((each) => confineValue(each, listens));
  if (!isRecord(value)) return value;
  const isFile = String(value['@type']).includes('FileAccessLog');
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (listens && key === 'port_value' && typeof each === 'number' && each > 0 && each < 65536) return [key, 0];
      if (key === 'pipe' && isRecord(each)) return [key, { ...each, path: relative(each.path) }];
      if (key === 'filename' || (key === 'path' && isFile)) return [key, relative(each)];
      return [key, confineValue(each, listens)];
    }),
  );
}

function relative(path: unknown): unknown {
  return typeof path === 'string' ? path.replace(/^\/.*/s, 'file') : path;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
