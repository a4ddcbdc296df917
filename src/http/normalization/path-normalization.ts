// Normalizes paths before routing: escaped slashes, dot segments (RFC 3986), repeated slashes. A single scan detects paths that need no
// change.

import { headerKey } from '../../common/text/header-names.js';
import type { HttpConnectionManager } from '../../config/generated/api.js';
import { Runtime } from '../../runtime/runtime.js';
import type { LocalReply } from '../filters/filter.js';
import { isGrpcRequest } from '../headers/grpc-reply.js';
import { type HeaderBlock, Method } from '../headers/header-block.js';
import { pathEndOf } from '../routing/matching/query.js';

/** The fields of HttpConnectionManager that are read here. */
export type PathConfig = Pick<
  HttpConnectionManager,
  'normalize_path' | 'merge_slashes' | 'path_with_escaped_slashes_action'
>;

const enum EscapedSlashes {
  Keep = 0,
  Reject = 1,
  Redirect = 2,
  Forward = 3,
}

export class PathNormalizer {
  readonly #normalizes: boolean;
  readonly #mergesSlashes: boolean;
  readonly #escapedSlashes: EscapedSlashes;

  private constructor(config: PathConfig, runtime: Runtime) {
    this.#normalizes =
      config.normalize_path ?? runtime.fraction('http_connection_manager.normalize_path', {}).isHitBy(MIDDLE);
    this.#mergesSlashes = config.merge_slashes ?? false;
    this.#escapedSlashes = escapedSlashesOf(config, runtime);
  }

  /**
   * Returns undefined if paths are never changed. As in Envoy, runtime keys are read once, when the configuration is built, so that all
   * requests of a connection manager follow the same rules on all workers.
   */
  static of(config: PathConfig, runtime = new Runtime()): PathNormalizer | undefined {
    const normalizer = new PathNormalizer(config, runtime);
    const doesAnything =
      normalizer.#normalizes || normalizer.#mergesSlashes || normalizer.#escapedSlashes !== EscapedSlashes.Keep;
    return doesAnything ? normalizer : undefined;
  }

  /** Normalizes the path of a request. Returns the local reply for a request that must not be served. */
  apply(headers: HeaderBlock): LocalReply | undefined {
    const { memory, pathStart } = headers;
    // The target of CONNECT and the "*" of OPTIONS are not paths.
    if (headers.method === Method.Connect || memory.bytes[pathStart] !== SLASH) return undefined;
    const end = pathEndOf(memory.bytes, pathStart, headers.pathEnd);
    if (isPlain(memory.bytes, pathStart, end)) return undefined;
    const original = memory.text(pathStart, end);
    let path = original;
    let redirects = false;
    if (this.#escapedSlashes !== EscapedSlashes.Keep) {
      path = unescapeSlashes(original);
      if (path !== original) {
        if (this.#escapedSlashes === EscapedSlashes.Reject) return refusal();
        redirects = this.#escapedSlashes === EscapedSlashes.Redirect;
        // gRPC clients do not follow redirects.
        if (redirects && isGrpcRequest(headers)) return refusal();
      }
    }
    if (this.#normalizes) {
      const normal = normalizePath(path);
      if (normal === undefined) return refusal();
      path = normal;
    }
    // After the removal of dot segments, which can leave repeated slashes.
    if (this.#mergesSlashes) path = path.replace(/\/{2,}/g, '/');
    if (path !== original) headers.setPath(path + memory.text(end, headers.pathEnd));
    return redirects ? redirectTo(headers.pathText()) : undefined;
  }
}

/** Normalizes a path and merges its slashes; undefined if it has a NUL. `path`: see normalizePath(). */
export function mergedPath(path: string): string | undefined {
  return normalizePath(path)?.replace(/\/{2,}/g, '/');
}

/**
 * Resolves dot segments, including those with parameters ("..;x", RFC 3986 section 3.3, which some hosts resolve). Unescapes unreserved
 * characters, escapes characters that are not allowed in a path, and turns backslashes into slashes. Keeps other escapes. Returns undefined
 * if the path has a NUL.
 * @param path begins with a slash and has no query; one character per byte
 */
function normalizePath(path: string): string | undefined {
  let unescaped = '';
  for (let at = 0; at < path.length; at++) {
    const code = path.charCodeAt(at);
    if (code === SEMICOLON && endsWithDots(unescaped)) {
      const end = path.indexOf('/', at);
      at = (end < 0 ? path.length : end) - 1;
      continue;
    }
    if (code === PERCENT) {
      const value = escapedByte(path, at);
      if (value === 0) return undefined;
      if (value < 0) {
        unescaped += '%';
        continue;
      }
      unescaped += isUnreserved(value) ? String.fromCharCode(value) : path.slice(at, at + 3);
      at += 2;
    } else if (code === 0) return undefined;
    else if (code === BACKSLASH) unescaped += '/';
    else unescaped += MUST_ESCAPE[code] === 1 ? `%${code.toString(16).toUpperCase().padStart(2, '0')}` : path[at];
  }
  return removeDotSegments(unescaped);
}

/** Returns whether the last segment is "." or "..". */
function endsWithDots(path: string): boolean {
  return path.endsWith('/.') || path.endsWith('/..');
}

/** Unescapes %2F and %5C. */
function unescapeSlashes(path: string): string {
  return path.replace(/%2f/gi, '/').replace(/%5c/gi, '\\');
}

/** RFC 3986 section 5.2.4. Empty segments count as segments. */
function removeDotSegments(path: string): string {
  const kept: string[] = [];
  const segments = path.slice(1).split('/');
  segments.forEach((segment, index) => {
    const isLast = index === segments.length - 1;
    if (segment !== '.' && segment !== '..') {
      kept.push(segment);
      return;
    }
    if (segment === '..') kept.pop();
    if (isLast) kept.push('');
  });
  return `/${kept.join('/')}`;
}

const SLASH = 47;
const PERCENT = 37;
const SEMICOLON = 59;
const BACKSLASH = 92;

/** Used instead of a random number, so that all workers decide alike: a fraction applies if it exceeds one half. */
const MIDDLE = 2 ** 31;

/** Indexed by the API's number of the action, which runtime provides. */
const ESCAPED_SLASHES_BY_NUMBER: Readonly<Record<number, EscapedSlashes>> = {
  2: EscapedSlashes.Reject,
  3: EscapedSlashes.Redirect,
  4: EscapedSlashes.Forward,
};

function escapedSlashesOf({ path_with_escaped_slashes_action: action }: PathConfig, runtime: Runtime): EscapedSlashes {
  const key = 'http_connection_manager.path_with_escaped_slashes_action';
  if (!runtime.fraction(`${key}_enabled`, { numerator: 100 }).isHitBy(MIDDLE)) return EscapedSlashes.Keep;
  const isDefault = action === undefined || action === 'IMPLEMENTATION_SPECIFIC_DEFAULT';
  const found = isDefault ? ESCAPED_SLASHES_BY_NUMBER[runtime.integer(key, 0).value] : ESCAPED_SLASHES[action];
  return found ?? EscapedSlashes.Keep;
}

const ESCAPED_SLASHES: Readonly<Record<string, EscapedSlashes>> = {
  REJECT_REQUEST: EscapedSlashes.Reject,
  UNESCAPE_AND_REDIRECT: EscapedSlashes.Redirect,
  UNESCAPE_AND_FORWARD: EscapedSlashes.Forward,
};

/** Bytes that must be escaped in a normalized path. */
const MUST_ESCAPE = new Uint8Array(256).map((_, byte) =>
  byte <= 32 || byte >= 127 || '"#<>?^`{|}'.includes(String.fromCharCode(byte)) ? 1 : 0,
);

/** Bytes that indicate a path that may need normalization; a dot does so only after a slash. */
const SUSPECT = MUST_ESCAPE.map((mustEscape, byte) => (byte === PERCENT || byte === BACKSLASH ? 1 : mustEscape));
const DOT = 46;

/** Returns whether the path certainly needs no normalization. */
function isPlain(bytes: Uint8Array, start: number, end: number): boolean {
  let isAfterSlash = false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === SLASH) {
      if (isAfterSlash) return false;
      isAfterSlash = true;
      continue;
    }
    if (SUSPECT[byte] === 1 || (isAfterSlash && byte === DOT)) return false;
    isAfterSlash = false;
  }
  return true;
}

function isUnreserved(byte: number): boolean {
  return /[A-Za-z0-9\-._~]/.test(String.fromCharCode(byte));
}

/** Returns the byte of the escape at `at`, or -1 if it is not a valid escape. */
function escapedByte(path: string, at: number): number {
  const digits = path.slice(at + 1, at + 3);
  return /^[0-9A-Fa-f]{2}$/.test(digits) ? Number.parseInt(digits, 16) : -1;
}

const LOCATION = headerKey('location');
const DETAILS = 'path_normalization_failed';
/**
 * A Location with this beginning leads to another host, which clients must not be able to choose. A dot segment before it resolves to the
 * same path.
 */
const NAMES_A_HOST = /^\/[/\\]/;

function refusal(): LocalReply {
  return { status: 400, body: '', details: DETAILS, flags: 0 };
}

function redirectTo(path: string): LocalReply {
  return {
    status: 307,
    body: '',
    details: DETAILS,
    flags: 0,
    editHeaders: (headers) => headers.set(LOCATION, NAMES_A_HOST.test(path) ? `/.${path}` : path),
  };
}
