// Replaces ${NAME} and ${NAME:-default} in the values of a configuration, after it was parsed: a variable cannot change the
// structure of the text around it.

import { isRecord } from '../../common/records.js';
import type { Path, PathPart } from './path.js';

/** The environment of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Called for each value with a mistake. */
export type ReportVariable = (path: Path, message: string) => void;

/**
 * Replaces the variables in all strings of `value`, in place, and returns their values. Names of members are left alone. A `$` that
 * no `{` follows is text; `$${` stands for the text `${`.
 * @param report receives variables that are not set and have no default, and `${` without a variable
 */
export function expandEnvironment(value: unknown, environment: Environment, report: ReportVariable): Set<string> {
  const expansion = new Expansion(environment, report);
  expansion.expand(value);
  return expansion.values;
}

class Expansion {
  /** The values of the variables that were replaced. */
  readonly values = new Set<string>();
  readonly #environment: Environment;
  readonly #report: ReportVariable;
  readonly #path: PathPart[] = [];
  /** Aliases repeat maps and lists. */
  readonly #visited = new Set<object>();

  constructor(environment: Environment, report: ReportVariable) {
    this.#environment = environment;
    this.#report = report;
  }

  /** The parsers bound the depth. */
  expand(value: unknown): unknown {
    if (typeof value === 'string') return value.includes('${') ? this.#text(value) : value;
    if (typeof value !== 'object' || value === null || this.#visited.has(value)) return value;
    this.#visited.add(value);
    if (Array.isArray(value)) for (const [index, item] of value.entries()) value[index] = this.#member(index, item);
    else if (isRecord(value)) {
      for (const [name, held] of Object.entries(value)) value[name] = this.#member(name, held);
    }
    return value;
  }

  #member(name: PathPart, value: unknown): unknown {
    this.#path.push(name);
    const expanded = this.expand(value);
    this.#path.pop();
    return expanded;
  }

  #text(text: string): string {
    return text.replace(VARIABLE, (written, name: string | undefined, fallback: string | undefined) => {
      if (written === '$${') return '${';
      if (name === undefined) return this.#refuse(written, NO_VARIABLE);
      // As in a shell, the default also stands for a variable that is empty.
      const found = this.#environment[name];
      if (found) this.values.add(found);
      if (fallback !== undefined) return found || fallback;
      return (
        found ??
        this.#refuse(
          written,
          `the environment variable ${name} is not set; set it, or give a default: \${${name}:-default}`,
        )
      );
    });
  }

  #refuse(written: string, message: string): string {
    this.#report([...this.#path], message);
    return written;
  }
}

const NO_VARIABLE = `\${ begins a variable, \${NAME} or \${NAME:-default}; write $\${ for the text \${`;

const VARIABLE = /\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?/g;
