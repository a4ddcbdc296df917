// Loaded into Baton before its own code (--import): an HTTP filter that calls the cluster 'service' for each request, with the
// mistake that x-mistake names. It is configured by messages of filters for AWS.

import type { AwsRequestSigningPerRoute } from '../../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import {
  HeadersStatus,
  HttpCall,
  type HttpFilterExtension,
  headerKey,
  Method,
} from '../../../../src/extensions/sdk.js';
import { partialTable } from '../../../config/partial-table.js';

const TYPE = 'envoy.extensions.filters.http.aws_request_signing.v3.AwsRequestSigningPerRoute';
const MISTAKE = headerKey('x-mistake');
const HOST = headerKey('host');

const calling: HttpFilterExtension<AwsRequestSigningPerRoute> = {
  category: 'envoy.filters.http',
  name: 'acme.calling',
  typeUrls: [`type.googleapis.com/${TYPE}`],
  implemented: partialTable({ [TYPE]: { stat_prefix: true } }),
  createOnWorker(_config, { calls }) {
    const service = calls.reference('service');
    return {
      create: (stream) => ({
        decodeHeaders(headers) {
          const mistake = headers.get(MISTAKE);
          const request = {
            body: [],
            timeoutMs: 60_000,
            writeHead(head: typeof headers) {
              if (mistake === 'throw') throw new TypeError('a mistake in writeHead()');
              if (mistake === 'nothing') return;
              head.setMethod(Method.Get, 'GET');
              head.setPath('/');
              head.add(HOST, 'service');
            },
          };
          const reply = (body: string) => stream.sendLocalReply({ status: 200, body, details: 'called', flags: 0 });
          HttpCall.start(calls, service.current, request, {
            onAnswer: ({ body }) => stream.run(() => reply(body.toString())),
            onFailure: (reason) => stream.run(() => reply(reason)),
          });
          return HeadersStatus.StopIteration;
        },
      }),
    };
  },
};

(EXTENSIONS as HttpFilterExtension[]).push(calling as HttpFilterExtension);
