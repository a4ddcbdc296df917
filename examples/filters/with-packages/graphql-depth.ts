// Refuses GraphQL queries that are nested too deeply, before they reach a host.

import { defineHttpFilter, type HttpContext } from 'baton';
import { type DocumentNode, GraphQLError, Kind, parse, type SelectionSetNode } from 'graphql';

/** A query of more tokens is refused while it is read. */
const MAX_TOKENS = 2000;

interface Config {
  readonly maxDepth: number;
}

export default defineHttpFilter<Config>({
  async onRequest(request, ctx) {
    try {
      // Servers also read a query from the URL, even that of a POST.
      const queries = request.query.getAll('query');
      if (request.method === 'POST') queries.push(((await request.json()) as { query: string }).query);
      const depths = queries.map((query) => depthOf(parse(query, { maxTokens: MAX_TOKENS, noLocation: true })));
      const depth = Math.max(0, ...depths);
      if (depth <= ctx.config.maxDepth) return undefined;
      ctx.stats.count('too_deep');
      return refuse(ctx, `the query has ${depth} levels, and may have ${ctx.config.maxDepth}`);
    } catch (error) {
      if (error instanceof GraphQLError || error instanceof SyntaxError) return refuse(ctx, error.message);
      throw error;
    }
  },
});

function refuse(ctx: HttpContext<Config>, message: string) {
  return ctx.reply(400, JSON.stringify({ errors: [{ message }] }), { 'content-type': 'application/json' });
}

function depthOf({ definitions }: DocumentNode): number {
  const fragments = new Map<string, SelectionSetNode>();
  for (const each of definitions)
    if (each.kind === Kind.FRAGMENT_DEFINITION) fragments.set(each.name.value, each.selectionSet);
  const known = new Map<string, number>();
  const below = (set: SelectionSetNode | undefined): number =>
    Math.max(
      0,
      ...(set?.selections ?? []).map((each) => {
        if (each.kind === Kind.FIELD) return 1 + below(each.selectionSet);
        if (each.kind === Kind.INLINE_FRAGMENT) return below(each.selectionSet);
        // Fragments are looked at once: they may refer to each other many times, and to themselves.
        const name = each.name.value;
        if (!known.has(name)) {
          known.set(name, Number.POSITIVE_INFINITY);
          known.set(name, below(fragments.get(name)));
        }
        return known.get(name)!;
      }),
    );
  return Math.max(
    ...definitions.map((each) => (each.kind === Kind.OPERATION_DEFINITION ? below(each.selectionSet) : 0)),
  );
}
