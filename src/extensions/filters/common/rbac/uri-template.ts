// envoy.path.match.uri_template: templates of paths such as `/users/{id}/*` and `/files/**`, as regular expressions.

import { BatonError, compileFullMatch } from '../../../sdk.js';

/** Variables, literals and wildcards of one part, in order. */
const PART = /\{([A-Za-z][\w]*)(?:=([^{}]*))?\}|\*\*|\*|[\w.~!$&'()+,;:@%=/-]+/y;
const LITERAL = "[\\w.~!$&'()*+,;:@%-]";
const MAX_VARIABLES = 5;

/** Compiles a template. Throws a BatonError for an invalid one; `where`: its path. */
export function compileTemplate(template: string, where: string): RegExp {
  const fail = (message: string): never => {
    throw new BatonError('CONFIG_INVALID', `path_template '${template}' ${message}`, { where });
  };
  if (!template.startsWith('/')) fail("must begin with '/'");
  const names = new Set<string>();
  let pattern = '';
  let endsWithRest = false;
  PART.lastIndex = 0;
  for (let at = 0; at < template.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const [part, name, inner] = PART.exec(template) ?? fail('is not valid');
    if (endsWithRest) fail("has '**' before its end");
    if (name !== undefined) {
      if (names.has(name)) fail(`has the variable '${name}' twice`);
      names.add(name);
      if (names.size > MAX_VARIABLES) fail(`has more than ${MAX_VARIABLES} variables`);
    }
    const value = name === undefined ? part : (inner ?? '*');
    endsWithRest = value.endsWith('**');
    pattern += patternOf(value);
  }
  return compileFullMatch(pattern);
}

function patternOf(value: string): string {
  return value.replace(/\*\*|\*|[^*\w/]/g, (found) => {
    if (found === '**') return `(?:${LITERAL}|/)*`;
    return found === '*' ? `${LITERAL}+` : `\\${found}`;
  });
}
