// Compiles envoy.config.core.v3.SubstitutionFormatString, for access logs and local replies.

import { BatonError, buildEach } from '../../common/errors/errors.js';
import { readDataSource } from '../../config/fields/data-source.js';
import type { CelExpressionConfig, SubstitutionFormatString } from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import { atPlace } from '../operators/format-error.js';
import type { ReplyBody } from '../operators/reply-body-operator.js';
import { compileFormat, DEFAULT_FORMAT, type Format } from './format.js';
import { compileJsonFormat } from './json-format.js';

/**
 * Compiles the configured format; undefined: the default format of access logs. `replyBody`: set for a format of local replies.
 * Throws a BatonError with the place of a mistake, Mistakes for several.
 */
export function compileSubstitutionFormat(config: SubstitutionFormatString | undefined, replyBody?: ReplyBody): Format {
  if (replyBody !== undefined || !config?.content_type) return compileParts(config, replyBody);
  return buildEach([() => compileParts(config, replyBody), refuseContentType], (build) => build())[0]!;
}

/** The same for the lines of an access log. */
export function compileLogFormat(config: SubstitutionFormatString | undefined): Format {
  if (!config?.content_type) return compileParts(config, undefined, true);
  return compileSubstitutionFormat(config);
}

function compileParts(
  config: SubstitutionFormatString | undefined,
  replyBody: ReplyBody | undefined,
  isLine = false,
): Format {
  const options = { omitEmptyValues: config?.omit_empty_values === true, replyBody, isLine, cel: celConfig(config) };
  if (config?.json_format !== undefined)
    return compileJsonFormat(config.json_format, { ...options, where: ['json_format'] });
  const { text_format_source: source, text_format: text = DEFAULT_FORMAT } = config ?? {};
  if (source === undefined) return atPlace('text_format', () => compileFormat(text, options));
  const place = SOURCES.find((member) => source[member] !== undefined);
  return atPlace(`text_format_source${place === undefined ? '' : `.${place}`}`, () =>
    compileFormat(readDataSource(source).toString(), options),
  );
}

/** The settings of %CEL()% in the last of its extensions. */
function celConfig(config: SubstitutionFormatString | undefined): CelExpressionConfig | undefined {
  const cels = (config?.formatters ?? []).map((each) =>
    unpack(each?.typed_config, 'envoy.extensions.formatter.cel.v3.Cel'),
  );
  return cels.findLast((cel) => cel !== undefined)?.cel_config;
}

const SOURCES = ['inline_string', 'inline_bytes', 'filename', 'environment_variable'] as const;

function refuseContentType(): never {
  const remedy = 'leave it out: it is for formats of local_reply_config';
  throw new BatonError('CONFIG_INVALID', 'log lines have no content type', { where: 'content_type', remedy });
}
