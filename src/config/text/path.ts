// Paths in a configuration: field names, map keys and list indexes, from the top.

export type PathPart = string | number;
export type Path = readonly PathPart[];

/** Returns `static_resources.listeners[0].name`. Keys that are not identifiers are in brackets and quotes. */
export function formatPath(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (PLAIN.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${JSON.stringify(part.length > 80 ? `${part.slice(0, 80)}…` : part)}]`;
  }
  return text;
}

/** Parses the output of formatPath(), for the relative paths that extensions report. */
export function parsePath(text: string): Path {
  const path: PathPart[] = [];
  for (const [, name, index, quoted] of text.matchAll(/([^.[\]"]+)(?=[.[]|$)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/g)) {
    if (index !== undefined) path.push(Number(index));
    else if (quoted !== undefined) path.push(String(JSON.parse(quoted)));
    else path.push(name!);
  }
  return path;
}

const PLAIN = /^[A-Za-z_@][\w-]*$/;
