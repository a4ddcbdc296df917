// hash_policy of a route: the properties of a request that are hashed to choose its host, in clusters that choose hosts by hash.

import type { StreamInfo } from '../../../access-log/stream/stream-info.js';
import { BatonError, buildEach } from '../../../common/errors/errors.js';
import { Word64, xxh64Text } from '../../../common/xxh64.js';
import type { RouteAction_HashPolicy } from '../../../config/generated/api.js';
import { ipOfAddress } from '../../../io/addresses/address.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { CookieHash } from './cookie-hash.js';
import { HeaderHash } from './header-hash.js';
import { QueryHash } from './query-hash.js';

/** One property to hash. */
interface HashMethod {
  /**
   * Hashes the request's property into `hash`. Returns false if the request lacks it.
   * @param cookies receives set-cookie values for the response; undefined: the response gets none
   */
  evaluate(headers: HeaderBlock, info: StreamInfo, hash: Word64, cookies: string[] | undefined): boolean;
}

interface ListedMethod {
  readonly method: HashMethod;
  /** Later methods are used only if there is no hash yet. */
  readonly isTerminal: boolean;
}

export class HashPolicy {
  readonly #methods: readonly ListedMethod[];

  private constructor(methods: readonly ListedMethod[]) {
    this.#methods = methods;
  }

  /**
   * Returns undefined if there is nothing to hash.
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
   * Combines the hashes of all properties that the request has, up to a terminal one, as Envoy does. Returns false if it has none.
   * @param cookies receives set-cookie values for the response; undefined: only cookies that the request has are hashed
   */
  evaluate(headers: HeaderBlock, info: StreamInfo, hash: Word64, cookies: string[] | undefined): boolean {
    let hasHash = false;
    hash.set(0, 0);
    for (const { isTerminal, method } of this.#methods) {
      if (method.evaluate(headers, info, part, cookies)) {
        // Without the rotation, two equal hashes would cancel out.
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

/** The address of the client without its port. Clients on Unix sockets have none. */
const SOURCE_IP: HashMethod = {
  evaluate(_headers, info, hash) {
    const ip = ipOfAddress(info.downstreamRemoteAddress);
    if (ip === '') return false;
    xxh64Text(ip, hash);
    return true;
  },
};
