// envoy.load_balancing_policies.override_host: requests go to the hosts that they name, or else to those that another policy picks.

import type { MetadataKey, OverrideHost } from '../../../config/generated/api.js';
import { headerKey, type MetadataPlace, obeyed, reportMistakes, type WrappingPolicyExtension } from '../../sdk.js';

const MESSAGE = 'envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost';

export const overrideHost: WrappingPolicyExtension<OverrideHost> = {
  category: 'envoy.load_balancing_policies',
  name: 'envoy.load_balancing_policies.override_host',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: obeyed('override_host_sources', 'selected_host_key', 'fallback_policy'),
    [`${MESSAGE}.OverrideHostSource`]: obeyed('header', 'metadata'),
  },
  validate({ override_host_sources: sources = [] }, report) {
    sources.forEach(({ header = '', metadata }, index) => {
      const at = `override_host_sources[${index}]`;
      if ((header === '') === (metadata === undefined)) report(at, 'it needs either a header or metadata');
      else if (header !== '') reportMistakes(report, `${at}.header`, () => headerKey(header));
    });
  },
  wrap: ({ fallback_policy: policies, override_host_sources: sources = [], selected_host_key: selected }) => ({
    policies,
    overrides: {
      sources: sources.map(({ header, metadata }) => header || placeOf(metadata!)),
      selected: selected && placeOf(selected),
    },
  }),
};

function placeOf({ key: namespace = '', path = [] }: MetadataKey): MetadataPlace {
  return { namespace, path: path.map(({ key = '' }) => key) };
}
