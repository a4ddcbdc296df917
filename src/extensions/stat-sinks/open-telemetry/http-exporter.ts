// Exports over HTTP (OTLP/HTTP): one POST per export, with the message in binary form.

import type { HttpService as HttpServiceConfig } from '../../../config/generated/api.js';
import { type CallingThread, HttpService } from '../../sdk.js';
import type { Exporter } from './exporter.js';

const PROTOBUF = 'application/x-protobuf';

export class HttpExporter implements Exporter {
  readonly #service: HttpService;

  constructor(service: HttpServiceConfig, thread: CallingThread) {
    this.#service = new HttpService(service, thread);
  }

  export(request: readonly Uint8Array[]): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.#service.post(PROTOBUF, request, {
        onAnswer({ status, contentType, body }) {
          if (status < 200 || status > 299) reject(new Error(`it answers with status ${status}`));
          else resolve(contentType.startsWith(PROTOBUF) ? body : undefined);
        },
        onFailure: (reason) => reject(new Error(reason)),
      });
    });
  }

  close(): void {
    this.#service.close();
  }
}
