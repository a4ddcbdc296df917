// The keys of TLS sessions in a file, with which Wireshark decrypts a recorded connection (TlsKeyLog).
//
// Each handshake opens the file for itself: it may be rotated at any time, and such logs are for the search for a mistake.

import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { messageOf } from '../common/errors/errors.js';
import type { CidrRange, TlsKeyLog } from '../config/generated/api.js';
import { addressOfText, parseIp } from '../io/addresses/address.js';
import { type IpRange, ipRange, isInRange } from '../io/addresses/ip-range.js';
import { loadShim } from '../io/shim.js';
import { getLogger } from '../log/logger.js';

const logger = getLogger('connection');

/** The two ends of a connection, as text with port. */
export interface LoggedEnds {
  readonly localText: string;
  readonly remoteText: string;
}

export class KeyLog {
  readonly #path: string;
  readonly #local: readonly IpRange[];
  readonly #remote: readonly IpRange[];
  #hasFailed = false;

  constructor({ local_address_range: local = [], path = '', remote_address_range: remote = [] }: TlsKeyLog) {
    this.#path = path;
    this.#local = local.flatMap(rangeOf);
    this.#remote = remote.flatMap(rangeOf);
  }

  /** Appends the keys of a connection, unless it is outside of the configured ranges. `keys`: whole lines. */
  write(keys: string, { localText, remoteText }: LoggedEnds): void {
    if (keys === '' || !isWithin(this.#local, localText) || !isWithin(this.#remote, remoteText)) return;
    try {
      append(this.#path, keys);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) logger.error(`TLS keys cannot be written to '${this.#path}': ${messageOf(error)}`);
      this.#hasFailed = true;
    }
  }
}

/** Without ranges, every address is within them. */
function isWithin(ranges: readonly IpRange[], text: string): boolean {
  if (ranges.length === 0) return true;
  const address = parseIp(addressOfText(text).ip);
  return address !== undefined && ranges.some((range) => isInRange(range, address));
}

function rangeOf({ address_prefix: prefix = '', prefix_len: bits = 0 }: CidrRange): IpRange[] {
  const range = ipRange(prefix, bits);
  return range === undefined ? [] : [range];
}

function append(path: string, keys: string): void {
  makePrivate(path);
  const file = loadShim().openOutput(path, true);
  try {
    writeSync(file.fd, keys);
  } finally {
    file.close().catch(() => {});
  }
}

/** Creates the file, if there is none, so that only this user can read it. */
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY, 0o600));
  } catch {
    // It exists, or opening it reports the error.
  }
}
