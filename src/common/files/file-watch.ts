// Notices that a file has become another one: written to, moved into place, or behind links that lead elsewhere now.

import { existsSync, type FSWatcher, lstatSync, readlinkSync, realpathSync, statSync, watch } from 'node:fs';
import { basename, dirname, join, parse, resolve } from 'node:path';
import { messageOf } from '../errors/errors.js';

export interface FileWatchEvents {
  /** The file is another one, and has been left alone for a moment; a file that has gone is told when there is one again. */
  changed(): void;
  /** Something is not watched that should be: changes may be noticed late. */
  failed(message: string): void;
}

export interface FileWatchOptions {
  /**
   * The file is looked at only when this directory is another one, or names in it come, go or are moved; if `seesContent`, also when what is
   * in it is written to.
   */
  readonly within?: { readonly path: string; readonly seesContent: boolean } | undefined;
  /** The file is looked at so often, whatever is noticed: a file system may tell of no change. */
  readonly pollMs?: number | undefined;
}

/** Who writes a file in place does so in pieces: it is read when none has come for so long. */
const QUIET_MS = 200;
/** A file that is never left alone is read all the same. */
const LONGEST_WAIT_MS = 2000;
/** What cannot be watched, for want of descriptors or of the kernel's watches, is looked at again and again until it can. */
const RETRY_MS = 2000;
/** Node takes no longer one. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** As many as the kernel follows. */
const MAX_LINKS = 40;

/**
 * Another text when there is another file, or other content in it. Content that is changed twice in one tick of the file
 * system's clock and keeps its size is missed.
 */
export function fileIdentity(path: string): string {
  try {
    const { ctimeNs, dev, ino, mtimeNs, size } = statSync(path, { bigint: true });
    return `${dev}:${ino}:${size}:${mtimeNs}:${ctimeNs}`;
  } catch {
    return '';
  }
}

export class FileWatch {
  readonly #path: string;
  readonly #within: FileWatchOptions['within'];
  readonly #events: FileWatchEvents;
  /** Directories in which a name stands that leads to the file. */
  readonly #watchers = new Map<string, Watched>();
  /** Directories that cannot be watched, which has been told. */
  readonly #unwatched = new Set<string>();
  #identity: string;
  #firstEvent = 0;
  #timer: NodeJS.Timeout | undefined;
  #retry: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;

  /** `identity`: of the file that is known already; if it is another one by now, that is told. */
  constructor(path: string, identity: string, events: FileWatchEvents, { within, pollMs }: FileWatchOptions = {}) {
    this.#path = resolve(path);
    this.#within = within && { path: resolve(within.path), seesContent: within.seesContent };
    this.#identity = identity;
    this.#events = events;
    if (pollMs !== undefined) this.#poll = setInterval(() => this.#check(), Math.min(pollMs, LONGEST_TIMER_MS)).unref();
    this.#watch();
    if (fileIdentity(this.#path) !== identity) this.#touched();
  }

  close(): void {
    clearInterval(this.#poll);
    clearTimeout(this.#timer);
    clearTimeout(this.#retry);
    for (const { watcher } of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  #touched(): void {
    const now = performance.now();
    if (this.#timer === undefined) this.#firstEvent = now;
    clearTimeout(this.#timer);
    const wait = Math.min(QUIET_MS, Math.max(0, this.#firstEvent + LONGEST_WAIT_MS - now));
    this.#timer = setTimeout(() => this.#check(), wait);
    this.#timer.unref();
  }

  #check(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    // What happened before these watches began is seen below.
    this.#watch();
    const identity = fileIdentity(this.#path);
    if (identity === '' || identity === this.#identity) return;
    this.#identity = identity;
    this.#events.changed();
  }

  /** Brings the watches in line with where links lead now. */
  #watch(): void {
    const wanted = this.#within === undefined ? namesOnTheWay(this.#path) : namesWithin(this.#within);
    for (const [directory, { inode, watcher }] of this.#watchers) {
      if (wanted.has(directory) && inode === inodeOf(directory)) continue;
      watcher.close();
      this.#watchers.delete(directory);
    }
    for (const [directory, names] of wanted) {
      const known = this.#watchers.get(directory);
      if (known === undefined) this.#watchDirectory(directory, names);
      else known.names = names;
    }
  }

  #watchDirectory(directory: string, names: Names): void {
    try {
      const watcher = watch(directory, { persistent: false });
      const watched: Watched = { watcher, names, inode: inodeOf(directory) };
      watcher.on('change', (event, name) => {
        const isOurs =
          typeof watched.names === 'string'
            ? watched.names === 'any' || event === 'rename'
            : watched.names.has(String(name));
        // A directory that goes is told by its own name.
        if (name === null || isOurs || name === basename(directory)) this.#touched();
      });
      watcher.on('error', (error) => {
        watcher.close();
        this.#watchers.delete(directory);
        this.#isUnwatched(directory, `${directory} is no longer watched: ${messageOf(error)}`);
      });
      this.#watchers.set(directory, watched);
      this.#unwatched.delete(directory);
    } catch (error) {
      this.#isUnwatched(directory, `${directory} cannot be watched: ${messageOf(error)}`);
    }
  }

  #isUnwatched(directory: string, message: string): void {
    if (!this.#unwatched.has(directory)) this.#events.failed(message);
    this.#unwatched.add(directory);
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#check();
    }, RETRY_MS).unref();
  }
}

/** Names in a directory; 'moved': each that comes, goes or is moved; 'any': each that is written to, too. */
type Names = ReadonlySet<string> | 'moved' | 'any';

interface Watched {
  readonly watcher: FSWatcher;
  names: Names;
  /** The directory itself may be replaced by another one of that name. */
  readonly inode: string;
}

/** What leads to a directory, and everything in it. */
function namesWithin({ path: directory, seesContent }: NonNullable<FileWatchOptions['within']>): Map<string, Names> {
  const found: Map<string, Names> = namesOnTheWay(directory);
  try {
    found.set(realpathSync(directory), seesContent ? 'any' : 'moved');
  } catch {
    // Then what is missing of the way is watched.
  }
  return found;
}

/**
 * Directories, and in each the names that lead to the file: its own, and each link on the way there. A way that ends before the
 * file's directory is watched where it ends.
 */
function namesOnTheWay(path: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  const note = (directory: string, name: string) => {
    const names = found.get(directory);
    if (names === undefined) found.set(directory, new Set([name]));
    else names.add(name);
  };
  let real = parse(path).root;
  let rest = path.slice(real.length).split('/');
  let links = 0;
  while (rest.length > 0) {
    const name = rest.shift()!;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      real = dirname(real);
      continue;
    }
    const link = linkAt(join(real, name));
    if (link !== undefined && ++links <= MAX_LINKS) {
      note(real, name);
      if (link.startsWith('/')) real = parse(link).root;
      rest = [...link.split('/'), ...rest];
    } else {
      const inner = join(real, name);
      if (rest.length === 0 || !existsSync(inner)) {
        note(real, name);
        break;
      }
      real = inner;
    }
  }
  return found;
}

function linkAt(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // What is not there yet leads nowhere.
    return undefined;
  }
}

function inodeOf(directory: string): string {
  try {
    const { dev, ino } = statSync(directory, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return '';
  }
}
