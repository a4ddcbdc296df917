// request_mirror_policies of a route: the clusters that get copies of its requests.

import { BatonError } from '../../../common/errors/errors.js';
import type { Random } from '../../../common/random.js';
import { headerKey } from '../../../common/text/header-names.js';
import type { RouteAction_RequestMirrorPolicy } from '../../../config/generated/api.js';
import type { Runtime, RuntimeFraction } from '../../../runtime/runtime.js';
import type { HeaderBlock } from '../../headers/header-block.js';
import { compileHeaderMutations, type HeaderMutations } from '../../headers/header-mutations.js';
import { type HeaderReader, headerReader } from '../matching/header-reader.js';

const HOST = headerKey('host');
const ALL = { numerator: 100 };

export class MirrorPolicy<C> {
  /** Changes of the copy's head. */
  readonly mutations: HeaderMutations | undefined;
  readonly #cluster: C | undefined;
  readonly #header: HeaderReader | undefined;
  readonly #find: (name: string) => C | undefined;
  readonly #fraction: RuntimeFraction;
  readonly #host: string;
  readonly #keepsHost: boolean;

  /** @throws BatonError CONFIG_INVALID; `where` is the path of the message */
  constructor(
    config: RouteAction_RequestMirrorPolicy,
    where: string,
    runtime: Runtime,
    resolve: (name: string) => C | undefined,
    find: (name: string) => C | undefined,
  ) {
    const { cluster = '', cluster_header: header = '' } = config;
    if (cluster !== '' && header !== '')
      throw new BatonError(
        'CONFIG_INVALID',
        `Only one of cluster '${cluster}' or cluster_header '${header}' in request mirror policy can be specified`,
        { where },
      );
    if (cluster === '' && header === '')
      throw new BatonError(
        'CONFIG_INVALID',
        'Exactly one of cluster or cluster_header in request mirror policy need to be specified',
        { where },
      );
    this.#cluster = cluster === '' ? undefined : resolve(cluster);
    this.#header = header === '' ? undefined : headerReader(header, `${where}.cluster_header`);
    this.#find = find;
    this.#fraction = runtime.fractionOf(config.runtime_fraction, ALL);
    this.#host = config.host_rewrite_literal ?? '';
    this.#keepsHost = config.disable_shadow_host_suffix_append ?? false;
    this.mutations = compileHeaderMutations(
      (config.request_headers_mutations ?? []).map(({ append, remove }, index) => ({
        toRemove: remove === undefined ? undefined : [remove],
        toAdd: append && [append],
        where: (list) => `${where}.request_headers_mutations[${index}].${list === 'to_add' ? 'append' : 'remove'}`,
      })),
    );
  }

  /** Returns the cluster that gets a copy of this request; undefined: none does. */
  clusterFor(headers: HeaderBlock, random: Random): C | undefined {
    if (!this.#fraction.isHit(random)) return undefined;
    if (this.#header === undefined) return this.#cluster;
    const name = this.#header(headers);
    return name === undefined || name === '' ? undefined : this.#find(name);
  }

  /** Sets the host of the copy. As in Envoy, `-shadow` before the port lets hosts distinguish copies. */
  setHost(headers: HeaderBlock): void {
    if (this.#host !== '') return headers.set(HOST, this.#host);
    if (this.#keepsHost) return;
    const host = headers.get(HOST) ?? '';
    const port = /:\d*$/.exec(host);
    headers.set(HOST, port === null ? `${host}-shadow` : `${host.slice(0, port.index)}-shadow${port[0]}`);
  }
}
