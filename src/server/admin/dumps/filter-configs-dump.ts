// The discovered configurations of HTTP filters (envoy.admin.v3.EcdsConfigDump).

import { shown } from '../../../xds/dynamic-state.js';
import { RESOURCE_MESSAGES } from '../../../xds/resource.js';
import type { FilterConfigSet } from '../../filter-configs/filter-config-set.js';
import { any, type Dump, mapped } from './dump.js';
import { statusFields, versionFields } from './state-fields.js';

const MESSAGE = RESOURCE_MESSAGES['extension-config'];

export function filterConfigsDump(filterConfigs: FilterConfigSet): Dump {
  const ecds_filters = mapped(
    () => filterConfigs.providers,
    ({ name, resource, state }) => ({
      name,
      message: {
        ...versionFields(state),
        ecds_filter: resource && any(MESSAGE, shown(resource.message, resource.sensitive)),
        ...statusFields(MESSAGE, state),
      },
    }),
  );
  return { message: 'EcdsConfigDump', lists: { ecds_filters } };
}
