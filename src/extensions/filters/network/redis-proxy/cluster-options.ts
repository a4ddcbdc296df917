// RedisProtocolOptions: what the hosts of a cluster must get before commands, in its typed_extension_protocol_options.

import type { RedisProtocolOptions } from '../../../../config/generated/api.js';
import {
  type Cluster,
  type NamedExtension,
  obeyed,
  readDataSource,
  refused,
  reportMistakes,
  unpack,
} from '../../../sdk.js';

const NAME = 'envoy.filters.network.redis_proxy';
const OPTIONS = 'envoy.extensions.filters.network.redis_proxy.v3.RedisProtocolOptions';

export const redisProtocolOptions: NamedExtension = {
  category: 'envoy.upstream_options',
  name: NAME,
  typeUrls: [`type.googleapis.com/${OPTIONS}`],
  implemented: {
    [OPTIONS]: {
      ...obeyed('auth_password', 'auth_username'),
      aws_iam: refused('set auth_password'),
      credentials: refused('all hosts of a cluster get auth_password'),
    },
  },
  validate(config, report) {
    const { auth_password: password, auth_username: username } = config as RedisProtocolOptions;
    if (password !== undefined) reportMistakes(report, '', () => readDataSource(password, 'auth_password'));
    if (username !== undefined) reportMistakes(report, '', () => readDataSource(username, 'auth_username'));
  },
};

export interface Credentials {
  /** '': none. */
  readonly username: string;
  readonly password: string;
}

/** Returns undefined if hosts of the cluster get no credentials. */
export function credentialsOf({ spec }: Pick<Cluster, 'spec'>): Credentials | undefined {
  const options = unpack(spec.extensionOptions?.[NAME], OPTIONS);
  if (options?.auth_password === undefined) return undefined;
  const { auth_username: username } = options;
  return {
    username: username === undefined ? '' : readDataSource(username).toString('latin1'),
    password: readDataSource(options.auth_password).toString('latin1'),
  };
}
