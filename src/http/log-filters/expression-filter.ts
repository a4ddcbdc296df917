// envoy.access_loggers.extension_filters.cel: logs the streams for which an expression is true.

import { expressionOfText, type StreamExpression } from '../../access-log/attributes/stream-expression.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { BatonError, messageOf } from '../../common/errors/errors.js';
import type { ExpressionFilter as Config } from '../../config/generated/api.js';
import type { LogFilter } from './log-filter.js';

export class ExpressionFilter implements LogFilter {
  readonly needs: HeaderNeeds;
  readonly #expression: StreamExpression;

  /** @throws BatonError for an invalid expression; `where` is the path of the filter. */
  constructor({ cel_config: config, expression = '' }: Config, where: string) {
    try {
      this.#expression = expressionOfText(expression, config);
    } catch (error) {
      throw new BatonError('CONFIG_INVALID', messageOf(error), { where: `${where}.expression`, cause: error });
    }
    this.needs = this.#expression.needs;
  }

  /** As in Envoy, an error and a value of another type are not true. */
  matches(info: StreamInfo): boolean {
    return this.#expression.evaluate(info) === true;
  }
}
