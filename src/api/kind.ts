// How Baton recognizes what a module exports.

const KIND = Symbol.for('baton.kind');

/** Marks a definition with its kind. */
export function marked<D extends object>(definition: D, kind: string): D {
  Object.defineProperty(definition, KIND, { value: kind });
  return definition;
}
