// envoy.router.cluster_specifier_plugin.matcher: a matcher chooses the cluster of a request.

import type { Any, MatcherClusterAction, MatcherClusterSpecifier } from '../../../config/generated/api.js';
import { compileMatcher, type MatchTree } from '../../filters/common/matching/matcher.js';
import {
  BatonError,
  byteText,
  type ClusterSpecifier,
  type ClusterSpecifierExtension,
  obeyed,
  reportMistakes,
  StreamInfo,
  unpack,
} from '../../sdk.js';

const PACKAGE = 'envoy.extensions.router.cluster_specifiers.matcher.v3';
const ACTION = `${PACKAGE}.ClusterAction` as const;

export const matcherClusterSpecifier: ClusterSpecifierExtension<MatcherClusterSpecifier> = {
  category: 'envoy.router.cluster_specifier_plugin',
  name: 'envoy.router.cluster_specifier_plugin.matcher',
  typeUrls: [`type.googleapis.com/${PACKAGE}.MatcherClusterSpecifier`],
  implemented: { [`${PACKAGE}.MatcherClusterSpecifier`]: obeyed('cluster_matcher') },
  validate(config, report) {
    reportMistakes(report, 'cluster_matcher', () => treeOf(config, ''));
  },
  createOnWorker(config, { stats }, where): ClusterSpecifier {
    const tree = treeOf(config, `${where}.cluster_matcher`);
    return {
      clusterOf: (headers, info = UNKNOWN) => tree.find({ headers, info, stats }) ?? '',
    };
  },
};

/** Of a request of which only the head is known. */
const UNKNOWN = new StreamInfo();

/** Returns the matcher, whose actions are names of clusters. */
function treeOf({ cluster_matcher: matcher = {} }: MatcherClusterSpecifier, where: string): MatchTree<string> {
  return compileMatcher(matcher, where, {
    isHttp: true,
    action(config: Any, at: string) {
      const action: MatcherClusterAction | undefined = unpack(config, ACTION);
      if (action === undefined) throw new BatonError('CONFIG_INVALID', `the action is a ${ACTION}`, { where: at });
      return byteText(action.cluster ?? '');
    },
  });
}
