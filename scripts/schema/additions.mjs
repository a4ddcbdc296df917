// Fields that Envoy has added to messages since the release that @grpc/grpc-js-xds ships.

/** Proto text of the fields by message. */
export const ADDITIONS = {
  'envoy.config.bootstrap.v3.Admin': 'repeated envoy.type.matcher.v3.StringMatcher allow_paths = 7;',
};
