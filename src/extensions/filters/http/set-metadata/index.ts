// envoy.filters.http.set_metadata: adds constant values to the dynamic metadata of requests, for logs and headers.

import type { SetMetadataConfig, SetMetadataMetadata, Struct } from '../../../../config/generated/api.js';
import {
  accepted,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  type StreamControl,
} from '../../../sdk.js';

export const setMetadata: HttpFilterExtension<SetMetadataConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.set_metadata',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config'],
  implemented: {
    'envoy.extensions.filters.http.set_metadata.v3.Config': { metadata_namespace: true, value: true, metadata: true },
    'envoy.extensions.filters.http.set_metadata.v3.Metadata': {
      metadata_namespace: true,
      allow_overwrite: true,
      value: true,
      typed_value: accepted(
        'operators of formats read untyped metadata only, and no other filter of this build reads typed metadata',
      ),
    },
  },
  createOnWorker(config): HttpFilterFactory {
    const entries = entriesOf(config);
    return { create: (stream) => (entries.length === 0 ? undefined : new SetMetadataFilter(stream, entries)) };
  },
};

interface Entry {
  readonly namespace: string;
  readonly value: Struct;
  /** The value is merged into an existing one, which otherwise stays as it is. */
  readonly mayOverwrite: boolean;
}

/** Returns the deprecated pair of the configuration, then the list. */
function entriesOf({ metadata = [], metadata_namespace: namespace = '', value }: SetMetadataConfig): Entry[] {
  const first = namespace === '' || value === undefined ? [] : [{ namespace, value, mayOverwrite: true }];
  return [...first, ...metadata.filter((entry) => entry.typed_value === undefined).map(entryOf)];
}

function entryOf(entry: SetMetadataMetadata): Entry {
  return {
    namespace: entry.metadata_namespace!,
    value: entry.value ?? {},
    mayOverwrite: entry.allow_overwrite ?? false,
  };
}

class SetMetadataFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #entries: readonly Entry[];

  constructor(stream: StreamControl, entries: readonly Entry[]) {
    this.#stream = stream;
    this.#entries = entries;
  }

  decodeHeaders(): HeadersStatus {
    const metadata = this.#stream.info.ownDynamicMetadata();
    for (const { namespace, value, mayOverwrite } of this.#entries) {
      if (mayOverwrite || !metadata.has(namespace)) metadata.merge(namespace, value);
    }
    return HeadersStatus.Continue;
  }
}
