// envoy.path.match.uri_template: templates of paths such as `/users/{id}/*` and `/files/{name=**}`, as regular expressions.

import { BatonError } from '../../../common/errors/errors.js';
import { compileFullMatch, type Regex } from '../../../common/text/regex.js';

/** Variables, literals and wildcards of one part, in order. */
const PART = /\{([A-Za-z][\w]*)(?:=([^{}]+))?\}|\*\*|\*|[\w.~!$&'()+,;:@%=/-]+/y;
const LITERAL = "[\\w.~!$&'()*+,;:@%-]";
/** What a variable stands for: segments that are literals or wildcards. */
const VALUE = /^(?:\*\*?|[\w.~!$&'()+,;:@%-]+)(?:\/(?:\*\*?|[\w.~!$&'()+,;:@%-]+))*$/;
const MAX_VARIABLES = 5;

export class UriTemplate {
  /** The names of the variables, in the order of the groups of `regex`. */
  readonly names: readonly string[];
  /** Matches a path without its query. */
  readonly regex: Regex;

  /** Throws a BatonError for an invalid template; `where`: its path. */
  constructor(template: string, where: string) {
    const fail = (message: string): never => {
      throw new BatonError('CONFIG_INVALID', `path_template '${template}' ${message}`, { where });
    };
    if (!template.startsWith('/')) fail("must begin with '/'");
    if (template.includes('//')) fail('has an empty segment');
    const names: string[] = [];
    let pattern = '';
    let hasRest = false;
    let endsWithVariable = false;
    PART.lastIndex = 0;
    for (let at = 0; at < template.length; at = PART.lastIndex) {
      PART.lastIndex = at;
      const [part, name, inner] = PART.exec(template) ?? fail('is not valid');
      if (hasRest && (name !== undefined || part.includes('*'))) fail("has a wildcard after '**'");
      if (name !== undefined) {
        if (names.includes(name)) fail(`has the variable '${name}' twice`);
        if (endsWithVariable) fail(`has nothing before the variable '${name}'`);
        if (inner !== undefined && (!VALUE.test(inner) || /\*\*.*\*/.test(inner)))
          fail(`has an invalid value of the variable '${name}'`);
        if (names.push(name) > MAX_VARIABLES) fail(`has more than ${MAX_VARIABLES} variables`);
      }
      const value = name === undefined ? part : (inner ?? '*');
      hasRest ||= value.includes('**');
      endsWithVariable = name !== undefined;
      pattern += name === undefined ? patternOf(value) : `(${patternOf(value)})`;
    }
    this.names = names;
    this.regex = compileFullMatch(pattern);
  }
}

function patternOf(value: string): string {
  return value.replace(/\*\*|\*|[^*\w/]/g, (found) => {
    if (found === '**') return `(?:${LITERAL}|/)*`;
    return found === '*' ? `${LITERAL}+` : `\\${found}`;
  });
}
