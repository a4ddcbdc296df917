// The files of databases: the primary reads them into memory that all workers share, and again when they change.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import {
  BatonError,
  FileWatch,
  fileIdentity,
  getLogger,
  messageOf,
  type PrimaryFilterContext,
  type PrimaryPart,
  type PrimaryPort,
  type Scope,
  type WorkerContext,
  type WorkerPort,
} from '../../../sdk.js';
import { Mmdb } from './mmdb.js';
import { FileStats } from './stats.js';

const logger = getLogger('filter');

const PORT = 'envoy.geoip_providers.maxmind';
/** The largest known databases have a tenth of this. */
const MAX_BYTES = 2 ** 30;

/** The published state of a file. */
interface PublishedFile {
  readonly memory: SharedArrayBuffer;
  readonly successes: number;
  readonly errors: number;
}

class DatabaseFile {
  users = 0;
  published: PublishedFile;
  readonly #watch: FileWatch;

  /** Throws when the file cannot be used. */
  constructor(path: string, changed: () => void) {
    const identity = fileIdentity(path);
    this.published = { memory: read(path), successes: 0, errors: 0 };
    this.#watch = new FileWatch(path, identity, {
      changed: () => {
        this.#reload(path);
        changed();
      },
      failed: (message) => logger.error(`changes of ${path} may be detected late: ${message}`),
    });
  }

  close(): void {
    this.#watch.close();
  }

  #reload(path: string): void {
    const { errors, memory, successes } = this.published;
    try {
      this.published = { memory: read(path), successes: successes + 1, errors };
      logger.info(`the database ${path} was read again`);
    } catch (error) {
      this.published = { memory, successes, errors: errors + 1 };
      logger.error(`the database ${path} cannot be used, and the previous one remains: ${messageOf(error)}`);
    }
  }
}

const onPrimary = new WeakMap<PrimaryPort, Map<string, DatabaseFile>>();

/** Reads the files and makes them available to the workers, until the part is closed. Throws a BatonError. */
export function openDatabases(context: PrimaryFilterContext, paths: readonly string[]): PrimaryPart {
  const port = context.port(PORT);
  const files = onPrimary.get(port) ?? new Map<string, DatabaseFile>();
  onPrimary.set(port, files);
  const publish = () => port.publish([...files].map(([path, { published }]) => [path, published]));
  const held: string[] = [];
  const close = () => {
    for (const path of held.splice(0)) {
      const file = files.get(path)!;
      if (--file.users > 0) continue;
      file.close();
      files.delete(path);
    }
    publish();
  };
  try {
    for (const path of paths) {
      const file = files.get(path) ?? new DatabaseFile(path, publish);
      files.set(path, file);
      file.users++;
      held.push(path);
    }
  } catch (error) {
    close();
    throw error;
  }
  publish();
  return { close };
}

function read(path: string): SharedArrayBuffer {
  const fail = (message: string) => new BatonError('CONFIG_INVALID', `the database ${path}: ${message}`);
  let file: number;
  try {
    file = openSync(path, 'r');
  } catch (error) {
    throw fail(messageOf(error));
  }
  try {
    const stat = fstatSync(file);
    if (!stat.isFile()) throw fail('it is not a file');
    if (stat.size > MAX_BYTES) throw fail(`it has more than ${MAX_BYTES} bytes`);
    const memory = new SharedArrayBuffer(stat.size);
    const bytes = new Uint8Array(memory);
    for (let at = 0; at < bytes.length; ) {
      const length = readSync(file, bytes, at, bytes.length - at, at);
      if (length === 0) throw fail('it has become shorter while it was read');
      at += length;
    }
    new Mmdb(bytes);
    return memory;
  } catch (error) {
    throw error instanceof BatonError ? error : fail(messageOf(error));
  } finally {
    closeSync(file);
  }
}

/** A database on a worker. */
export interface CurrentDatabase {
  /** Undefined until the primary has published it. */
  database: Mmdb | undefined;
  /** Reloads of the file, from its first use. */
  successes: number;
  errors: number;
}

/** The stats of a file. */
interface ShownFile {
  readonly path: string;
  readonly stats: Scope;
  users: number;
  /** What they have counted. */
  successes: number;
  errors: number;
}

/** A worker's view of the files. */
export class WorkerDatabases {
  readonly isLeader: boolean;
  readonly #port: WorkerPort;
  readonly #current = new Map<string, CurrentDatabase>();
  readonly #memories = new Map<string, SharedArrayBuffer>();
  /** By the keys of their stats. */
  readonly #shown = new Map<string, ShownFile>();

  static of(context: WorkerContext): WorkerDatabases {
    const port = context.port(PORT);
    const databases = onWorkers.get(port) ?? new WorkerDatabases(port);
    onWorkers.set(port, databases);
    return databases;
  }

  private constructor(port: WorkerPort) {
    this.#port = port;
    this.isLeader = port.worker === 0;
    port.onState = () => this.#changed();
    this.#changed();
  }

  /** Returns the database of a file, which follows its changes. */
  at(path: string): CurrentDatabase {
    const current = this.#current.get(path) ?? { database: undefined, successes: 0, errors: 0 };
    this.#current.set(path, current);
    return current;
  }

  /**
   * Keeps the stats of a file up to date until the returned function is called. `key`: identifies the stats, which several users may have.
   */
  show(path: string, key: string, stats: () => Scope): () => void {
    const shown = this.#shown.get(key) ?? { path, stats: stats(), users: 0, successes: 0, errors: 0 };
    if (shown.users++ === 0) {
      const { errors, successes } = this.at(path);
      this.#shown.set(key, Object.assign(shown, { successes, errors }));
      this.#show(shown);
    }
    return () => {
      if (--shown.users === 0) this.#shown.delete(key);
    };
  }

  #show(shown: ShownFile): void {
    const { at } = FileStats;
    const { database, errors, successes } = this.at(shown.path);
    shown.stats.add(at.db_reload_success, successes - shown.successes);
    shown.stats.add(at.db_reload_error, errors - shown.errors);
    if (database !== undefined) shown.stats.set(at.db_build_epoch, database.buildEpoch);
    shown.successes = successes;
    shown.errors = errors;
  }

  #changed(): void {
    const files = new Map((this.#port.state ?? []) as [string, PublishedFile][]);
    for (const [path, { errors, memory, successes }] of files) {
      const current = this.at(path);
      current.successes = successes;
      current.errors = errors;
      if (this.#memories.get(path) === memory) continue;
      this.#memories.set(path, memory);
      current.database = new Mmdb(new Uint8Array(memory));
    }
    for (const path of [...this.#current.keys()]) {
      if (files.has(path)) continue;
      this.#current.delete(path);
      this.#memories.delete(path);
    }
    for (const shown of this.#shown.values()) this.#show(shown);
  }
}

const onWorkers = new WeakMap<WorkerPort, WorkerDatabases>();
