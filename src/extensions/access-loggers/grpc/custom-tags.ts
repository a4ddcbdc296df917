// Custom tags of log entries (envoy.type.tracing.v3.CustomTag). As in Envoy, all of them are texts.

import { writeMapText } from '../../messages/wire.js';
import type { CompiledTag, ProtobufWriter, StreamInfo } from '../../sdk.js';

/** Writes the tags that have a value. */
export function writeCustomTags(
  to: ProtobufWriter,
  field: number,
  tags: readonly CompiledTag[],
  info: StreamInfo,
): void {
  for (const tag of tags) {
    const value = tag.value(info);
    if (value !== '') writeMapText(to, field, tag.name, value);
  }
}
