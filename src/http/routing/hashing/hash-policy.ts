// hash_policy of a route: what requests have in common that are to go to one host, as far as their cluster chooses hosts by hash.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { Word64, xxh64Text } from '../../../common/xxh64.js';
import type { RouteAction_HashPolicy } from '../../../config/generated/api.js';
import { ipOfAddress } from '../../../io/addresses/address.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { CookieHash } from './cookie-hash.js';
import { HeaderHash } from './header-hash.js';
import { QueryHash } from './query-hash.js';

/** One thing that is hashed. */
interface HashMethod {
  /**
   * Hashes what the request has of it into `hash`; returns false when it has nothing.
   * @param cookies takes values of set-cookie that its response is to have
   */
  evaluate(headers: HeaderBlock, info: StreamInfo, hash: Word64, cookies: string[]): boolean;
}

interface ListedMethod {
  readonly method: HashMethod;
  /** The rest counts only for requests that have nothing so far. */
  readonly isTerminal: boolean;
}

export class HashPolicy {
  readonly #methods: readonly ListedMethod[];

  private constructor(methods: readonly ListedMethod[]) {
    this.#methods = methods;
  }

  /**
   * Undefined when there is nothing to hash.
   * @throws BatonError CONFIG_INVALID or REGEX_INVALID; `where` is the path of the list in the configuration
   */
  static of(configs: readonly RouteAction_HashPolicy[] | undefined, where: string): HashPolicy | undefined {
    const methods = buildEach(configs ?? [], (config, index) => {
      const method = methodOf(config, `${where}[${index}]`);
      return method === undefined ? [] : [{ method, isTerminal: config.terminal ?? false }];
    }).flat();
    return methods.length === 0 ? undefined : new HashPolicy(methods);
  }

  /**
   * Combines, as Envoy does, what the request has, up to the first that is terminal; returns false when it has nothing of all.
   * @param cookies takes values of set-cookie that its response is to have
   */
  evaluate(headers: HeaderBlock, info: StreamInfo, hash: Word64, cookies: string[]): boolean {
    let hasHash = false;
    hash.set(0, 0);
    for (const { isTerminal, method } of this.#methods) {
      if (method.evaluate(headers, info, part, cookies)) {
        // Otherwise two equal ones would leave nothing.
        hash.rotateLeft(1);
        hash.xor(part.hi, part.lo);
        hasHash = true;
      }
      if (isTerminal && hasHash) break;
    }
    return hasHash;
  }
}

const part = new Word64();

function methodOf(config: RouteAction_HashPolicy, where: string): HashMethod | undefined {
  const { connection_properties: connection, cookie, header, query_parameter: parameter } = config;
  if (header !== undefined) return new HeaderHash(header, `${where}.header`);
  if (cookie !== undefined) return new CookieHash(cookie, `${where}.cookie`);
  if (parameter !== undefined) return new QueryHash(parameter);
  if (connection !== undefined) return connection.source_ip ? SOURCE_IP : undefined;
  const message = 'a hash policy needs header, cookie, query_parameter or connection_properties';
  throw new BatonError('CONFIG_INVALID', message, { where });
}

/** The address of the client, without its port. One that comes by a Unix socket has none. */
const SOURCE_IP: HashMethod = {
  evaluate(_headers, info, hash) {
    const ip = ipOfAddress(info.downstreamRemoteAddress);
    if (ip === '') return false;
    xxh64Text(ip, hash);
    return true;
  },
};
