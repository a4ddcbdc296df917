// Formats of JSON logs: a structure whose strings contain operators, compiled once. Each stream is one object on one line.
//
// Keys are sorted by their bytes, as in Envoy, regardless of the configured order. A string that is exactly one operator yields
// the operator's value with its type, or null if it is missing; other strings yield strings.

import { buildEach } from '../../common/errors/errors.js';
import type { Json, Struct } from '../../config/generated/api.js';
import { formatPath, type Path } from '../../config/text/path.js';
import type { LogBuffer } from '../log-buffer.js';
import { atPlace } from '../operators/format-error.js';
import { InlinedOperator } from '../operators/inlined-operator.js';
import { type HeaderNeeds, Literal, type Operator } from '../operators/operator.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { compareBytes } from './compare-bytes.js';
import { Format, type FormatOptions, noHeaderNeeds, parseOperators } from './format.js';
import { escapeJson } from './json-escape.js';
import { TextTemplate } from './text-template.js';

export interface JsonFormatOptions extends FormatOptions {
  /** Every value is a string, and a missing one is `-`: the form of the deprecated json_format. */
  asStrings?: boolean;
  /** Path of the structure, for errors. */
  where?: Path;
}

/**
 * Compiles a structure of formats. `omitEmptyValues` leaves out keys without a value. Throws a BatonError with the path of the
 * key for an invalid operator, Mistakes for several.
 */
export function compileJsonFormat(format: Struct, options: JsonFormatOptions = {}): Format {
  const needs = noHeaderNeeds();
  const node = new Compiler(needs, options).object(format, options.where ?? []);
  return new Format(needs, {
    write(info, out) {
      node.write(info, out);
      out.byte(NEWLINE);
    },
  });
}

interface Node {
  /** Appends the value. Returns false, with nothing appended, if the key is to be left out. */
  write(info: StreamInfo, out: LogBuffer): boolean;
}

class Compiler {
  readonly #needs: HeaderNeeds;
  readonly #options: JsonFormatOptions;

  constructor(needs: HeaderNeeds, options: JsonFormatOptions) {
    this.#needs = needs;
    this.#options = options;
  }

  object(format: Struct, path: Path): Node {
    const keys = Object.keys(format).sort(compareBytes);
    const members = buildEach(keys, (key) => ({
      key: new Literal(`${JSON.stringify(key)}:`),
      node: this.#value(format[key]!, [...path, key]),
    }));
    return new SequenceNode(123, 125, members);
  }

  #value(format: Json, path: Path): Node {
    if (typeof format === 'string') return this.#string(format, path);
    if (typeof format !== 'object' || format === null)
      return new Literal(JSON.stringify(this.#options.asStrings ? String(format) : format));
    if (Array.isArray(format)) {
      const items = buildEach(format as readonly Json[], (item, index) => this.#value(item, [...path, index]));
      return new SequenceNode(
        91,
        93,
        items.map((node) => ({ node })),
      );
    }
    return this.object(format as Struct, path);
  }

  #string(format: string, path: Path): Node {
    if (!format.includes('%')) return new Literal(JSON.stringify(format));
    const { asStrings = false, omitEmptyValues = false } = this.#options;
    const operators = atPlace(formatPath(path), () => parseOperators(format, this.#needs, this.#options));
    if (operators.length === 1 && !asStrings) return new ValueNode(operators[0]!, omitEmptyValues);
    return new TextNode(new TextTemplate(operators, omitEmptyValues));
  }
}

/** An object or a list. */
class SequenceNode implements Node {
  readonly #open: number;
  readonly #close: number;
  readonly #members: readonly { readonly key?: Literal; readonly node: Node }[];

  constructor(open: number, close: number, members: readonly { key?: Literal; node: Node }[]) {
    this.#open = open;
    this.#close = close;
    this.#members = members;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    out.byte(this.#open);
    const members = this.#members;
    const start = out.length;
    for (let i = 0; i < members.length; i++) {
      const { key, node } = members[i]!;
      const mark = out.length;
      if (mark > start) out.byte(COMMA);
      key?.write(info, out);
      if (!node.write(info, out)) out.length = mark;
    }
    out.byte(this.#close);
    return true;
  }
}

/** The value of one operator. */
class ValueNode implements Node {
  readonly #operator: InlinedOperator;
  readonly #omit: boolean;

  constructor(operator: Operator, omit: boolean) {
    this.#operator = new InlinedOperator(operator);
    this.#omit = omit;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    if (this.#operator.writeJson(info, out)) return true;
    if (this.#omit) return false;
    out.text('null');
    return true;
  }
}

/** Text with operators in it. */
class TextNode implements Node {
  readonly #template: TextTemplate;

  constructor(template: TextTemplate) {
    this.#template = template;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    out.byte(QUOTE);
    const start = out.length;
    this.#template.write(info, out);
    escapeJson(out, start);
    out.byte(QUOTE);
    return true;
  }
}

const NEWLINE = 10;
const QUOTE = 34;
const COMMA = 44;
