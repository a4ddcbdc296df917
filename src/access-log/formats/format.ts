// Format strings with %OPERATORS%, compiled once: for text logs, header values, and strings in JSON logs.

import { Mistakes, messageOf } from '../../common/errors/errors.js';
import type { CelExpressionConfig } from '../../config/generated/api.js';
import { LogBuffer } from '../log-buffer.js';
import { FormatError } from '../operators/format-error.js';
import { OneLineOperator } from '../operators/one-line-operator.js';
import { type HeaderNeeds, Literal, noHeaderNeeds, type Operator } from '../operators/operator.js';
import { createOperator } from '../operators/operators.js';
import type { ReplyBody } from '../operators/reply-body-operator.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { TextTemplate } from './text-template.js';

export { noHeaderNeeds } from '../operators/operator.js';

export interface FormatOptions {
  /** Writes nothing instead of `-` for a missing value. */
  omitEmptyValues?: boolean;
  /** The output is a header value. */
  isInHeader?: boolean;
  /** The output is a line of a log: values stay on it. */
  isLine?: boolean;
  /** Set if the output is the body of a local reply with this text. */
  replyBody?: ReplyBody | undefined;
  /** Functions of %CEL()% and %TYPED_CEL()%. */
  cel?: CelExpressionConfig | undefined;
}

/** The default format of access logs. */
export const DEFAULT_FORMAT =
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" ' +
  '%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ' +
  '%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ' +
  '"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"\n';

/** Compiles a format string. Throws a FormatError for an invalid operator, Mistakes for several. */
export function compileFormat(format: string, options: FormatOptions = {}): Format {
  const needs = noHeaderNeeds();
  let operators = parseOperators(format, needs, options);
  if (options.isLine === true)
    operators = operators.map((each) => (each.isFreeText ? new OneLineOperator(each) : each));
  return new Format(needs, new TextTemplate(operators, options.omitEmptyValues === true));
}

/** Returns the parts of a format string, with literal text as Literal. Throws as compileFormat() does. */
export function parseOperators(format: string, needs: HeaderNeeds, options: FormatOptions = {}): Operator[] {
  const { cel, isInHeader = false, replyBody } = options;
  const operators: Operator[] = [];
  const mistakes: FormatError[] = [];
  let literal = '';
  let at = 0;
  const endLiteral = (): void => {
    if (literal !== '') operators.push(new Literal(literal));
    literal = '';
  };
  while (at < format.length) {
    const percent = format.indexOf('%', at);
    if (percent < 0) break;
    literal += format.slice(at, percent);
    if (format[percent + 1] === '%') {
      literal += '%';
      at = percent + 2;
      continue;
    }
    const match = callAt(format, percent);
    if (match === null) {
      mistakes.push(new FormatError(NO_OPERATOR, format, percent));
      break;
    }
    endLiteral();
    const [all, name, parameter, length] = match;
    try {
      const maxLength = length === undefined ? undefined : Number(length);
      operators.push(createOperator({ name: name!, parameter, maxLength, isInHeader, replyBody, cel }, needs));
    } catch (error) {
      mistakes.push(new FormatError(messageOf(error), format, percent));
    }
    at = percent + all.length;
  }
  Mistakes.throw(mistakes);
  literal += format.slice(at);
  endLiteral();
  return operators;
}

/** The compiled form of a format. */
export interface Template {
  write(info: StreamInfo, out: LogBuffer): void;
}

/** A compiled format. Writing allocates nothing. */
export class Format {
  /** The header names that it reads, in lower case. */
  readonly needs: HeaderNeeds;
  readonly #template: Template;

  constructor(needs: HeaderNeeds, template: Template) {
    this.needs = needs;
    this.#template = template;
  }

  /** Appends the line or value. */
  write(info: StreamInfo, out: LogBuffer): void {
    this.#template.write(info, out);
  }

  /** Returns the value as a string with one character per byte (Latin-1), as in headers. */
  text(info: StreamInfo): string {
    scratch.length = 0;
    this.#template.write(info, scratch);
    return scratch.latin1();
  }
}

const scratch = new LogBuffer(1024);

function callAt(format: string, percent: number): RegExpExecArray | null {
  CEL_CALL.lastIndex = CALL.lastIndex = percent;
  return CEL_CALL.exec(format) ?? CALL.exec(format);
}

/** An expression may hold brackets: it ends before the first `)%`, or `):` with a length. */
const CEL_CALL = /%((?:TYPED_)?CEL)\((.*?)\)(?::([0-9]{1,9}))?%/suy;
/** %NAME%, %NAME(parameter)%, %NAME(parameter):length%. */
const CALL = /%([A-Z][A-Z0-9_]*)(?:\(([^)]*)\))?(?::([0-9]{1,9}))?%/uy;
const NO_OPERATOR =
  "no operator follows '%' (one is %NAME%, %NAME(parameter)% or %NAME(parameter):length%; write %% for a percent sign)";
