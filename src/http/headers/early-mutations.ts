// early_header_mutation_extensions of a connection manager: changes to the head of a request as its client has sent it.

import { BatonError } from '../../common/errors/errors.js';
import type { HeaderMutation, HeaderMutationHeaderMutation, TypedExtensionConfig } from '../../config/generated/api.js';
import { compileHeaderMutations, type HeaderMutations, MUTATION_FIELDS } from './header-mutations.js';

/**
 * Returns undefined without mutations.
 * @throws BatonError CONFIG_INVALID; `where` is the path of the list
 */
export function earlyMutations(
  configs: readonly TypedExtensionConfig[] | undefined,
  where: string,
): HeaderMutations | undefined {
  const changes = (configs ?? []).flatMap(({ typed_config: config }, index) => {
    const { mutations = [] } = config as unknown as HeaderMutationHeaderMutation;
    return mutations.map((mutation, at) => changeOf(mutation, `${where}[${index}].typed_config.mutations[${at}]`));
  });
  return compileHeaderMutations(changes);
}

function changeOf(
  { append, remove, remove_on_match: matching }: HeaderMutation,
  where: string,
): Parameters<typeof compileHeaderMutations>[0][0] {
  const name = remove ?? append?.header?.key ?? '';
  if (name.startsWith(':') || name.toLowerCase() === 'host')
    throw new BatonError('CONFIG_INVALID', `'${name}' cannot be changed this early`, { where });
  return {
    toRemove: remove === undefined ? undefined : [remove],
    toAdd: append === undefined ? undefined : [append],
    toRemoveMatching: matching?.key_matcher,
    where: (list) => `${where}.${MUTATION_FIELDS[list]}`,
  };
}
