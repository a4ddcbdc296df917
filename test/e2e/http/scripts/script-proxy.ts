// Starts a Baton whose HTTP filter is a module in TypeScript, in front of an upstream that echoes requests.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { tempDir } from '../../harness/environment.js';
import {
  type BatonOptions,
  type Config,
  type EchoedRequest,
  type HttpAnswer,
  ROUTER_FILTER,
  startEchoUpstream,
  staticCluster,
  type Teardown,
} from '../../harness/index.js';
import { type HttpProxy, managerOf, routeTo, startProxy } from '../proxy.js';

export interface ScriptOptions extends Omit<BatonOptions, 'config'> {
  /** The files of the module by name; its entry is filter.ts. */
  files: Readonly<Record<string, string>>;
  /** Fields of the filter: config, timeout, failure_policy. */
  filter?: Config;
  watch?: boolean;
  /** Port of the cluster `host`; default: that of an echoing upstream. */
  upstream?: number;
  /** Besides `host`. */
  clusters?: Config[];
  routes?: Config[];
  manager?: Config;
  extra?: Config;
}

export interface ScriptProxy extends HttpProxy {
  /** The directory of the module. */
  readonly directory: string;
  /** Writes a file of the module. */
  write(name: string, text: string): void;
}

export async function startScriptProxy(t: Teardown, options: ScriptOptions): Promise<ScriptProxy> {
  const {
    files,
    filter = {},
    watch = false,
    clusters = [],
    manager = {},
    extra = {},
    upstream,
    routes,
    ...rest
  } = options;
  const directory = tempDir(t);
  const write = (name: string, text: string) => writeScript(directory, name, text);
  for (const [name, text] of Object.entries(files)) write(name, text);
  const port = upstream ?? (await startEchoUpstream(t)).port;
  const proxy = await startProxy(t, {
    listeners: {
      main: managerOf(routes ?? [routeTo({ prefix: '/' }, 'host')], {
        http_filters: [scriptFilter('filter', filter), ROUTER_FILTER],
        ...manager,
      }),
    },
    clusters: [staticCluster('host', port), ...clusters],
    extra: { ...registering({ filter: { filename: join(directory, 'filter.ts'), watch } }), ...extra },
    ...rest,
  });
  return { ...proxy, directory, write };
}

export function writeScript(directory: string, name: string, text: string): void {
  const path = join(directory, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** Returns the part of a bootstrap that registers modules. */
export function registering(modules: Config): Config {
  return {
    bootstrap_extensions: [
      { name: 'scripts', typed_config: { '@type': 'type.googleapis.com/baton.scripts.v1.Scripts', modules } },
    ],
  };
}

/** Returns an element of http_filters. */
export function scriptFilter(module: string, more: Config = {}): Config {
  return {
    name: module,
    typed_config: { '@type': 'type.googleapis.com/baton.filters.http.script.v1.Script', module, ...more },
  };
}

/** Returns what the echoing upstream has received. */
export function echoed({ body }: HttpAnswer): EchoedRequest {
  return JSON.parse(body) as EchoedRequest;
}
