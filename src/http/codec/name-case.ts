// Http1ProtocolOptions.header_key_format as a NameCase.

import type { Http1ProtocolOptions, PreserveCaseFormatterConfig } from '../../config/generated/api.js';
import { NameCase } from './options.js';

/** Returns the case of names in heads that are sent with these options. */
export function nameCase({ header_key_format: format }: Http1ProtocolOptions): NameCase {
  if (format?.proper_case_words !== undefined) return NameCase.Proper;
  // Received names always keep their case. The formatter only determines that of names which Baton adds.
  const formatter = format?.stateful_formatter?.typed_config as PreserveCaseFormatterConfig | undefined;
  return formatter?.formatter_type_on_envoy_headers === 'PROPER_CASE' ? NameCase.ProperIfAdded : NameCase.AsReceived;
}
