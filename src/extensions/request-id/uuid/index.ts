// envoy.request_id.uuid: x-request-id is a random UUID. Connection managers make it in any case, and nothing is built from the extension.

import { accepted, type RequestIdExtension } from '../../sdk.js';

const ONLY_TRACING = accepted(
  'it is about sampling of traces, and tracing is not implemented: no ID is changed for it',
);

export const uuid: RequestIdExtension = {
  category: 'envoy.request_id',
  name: 'envoy.request_id.uuid',
  typeUrls: ['type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig'],
  implemented: {
    'envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig': {
      pack_trace_reason: ONLY_TRACING,
      use_request_id_for_trace_sampling: ONLY_TRACING,
    },
  },
};
