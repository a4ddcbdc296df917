// The interface for sending an export to the collector.

export interface Exporter {
  /**
   * Sends an encoded ExportMetricsServiceRequest, given in pieces. Resolves with the encoded response, or with undefined when the
   * response is not protobuf: the export was accepted, without details. Rejects when it was not accepted. After close() it may
   * reject or never settle.
   */
  export(request: readonly Uint8Array[]): Promise<Uint8Array | undefined>;
  /** Abandons exports in flight. */
  close(): void;
}
