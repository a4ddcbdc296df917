#include "tls/stapling.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "tls/handles.h"

namespace baton {
namespace {

using ResponseHandle = std::unique_ptr<OCSP_RESPONSE, TlsFree<OCSP_RESPONSE_free>>;
using BasicHandle = std::unique_ptr<OCSP_BASICRESP, TlsFree<OCSP_BASICRESP_free>>;

int64_t secondsOf(const ASN1_GENERALIZEDTIME* time) {
  tm parts{};
  return time != nullptr && ASN1_TIME_to_tm(time, &parts) == 1 ? static_cast<int64_t>(timegm(&parts)) : 0;
}

// Returns the one answer of a response, which `to` owns; nullptr with `reason`.
OCSP_SINGLERESP* readOne(const std::string& der, BasicHandle& to, std::string& reason) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const unsigned char* end = at + der.size();
  const ResponseHandle response(d2i_OCSP_RESPONSE(nullptr, &at, static_cast<long>(der.size())));
  ERR_clear_error();
  if (response == nullptr) {
    reason = "not an OCSP response in DER form";
  } else if (at != end) {
    reason = "Data contained more than a single OCSP response";
  } else if (OCSP_response_status(response.get()) != OCSP_RESPONSE_STATUS_SUCCESSFUL) {
    reason = "OCSP response was unsuccessful";
  } else {
    to.reset(OCSP_response_get1_basic(response.get()));
    ERR_clear_error();
    if (to != nullptr && OCSP_resp_count(to.get()) == 1) return OCSP_resp_get0(to.get(), 0);
    reason = to == nullptr ? "OCSP response has no body" : "OCSP Response must be for one certificate only";
  }
  return nullptr;
}

void readTimes(const OCSP_SINGLERESP* answer, OcspStaple& to) {
  ASN1_GENERALIZEDTIME* thisUpdate = nullptr;
  ASN1_GENERALIZEDTIME* nextUpdate = nullptr;
  OCSP_single_get0_status(const_cast<OCSP_SINGLERESP*>(answer), nullptr, nullptr, &thisUpdate, &nextUpdate);
  to.thisUpdate = secondsOf(thisUpdate);
  to.nextUpdate = secondsOf(nextUpdate);
}

// By the serial number, as in Envoy.
bool isAbout(const OCSP_SINGLERESP* answer, X509* leaf) {
  ASN1_INTEGER* serial = nullptr;
  OCSP_id_get0_info(nullptr, nullptr, nullptr, &serial, const_cast<OCSP_CERTID*>(OCSP_SINGLERESP_get0_id(answer)));
  return serial != nullptr && ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) == 0;
}

}  // namespace

bool readStaple(const std::string& der, OcspStaple& to, std::string& reason) {
  BasicHandle basic;
  const OCSP_SINGLERESP* answer = readOne(der, basic, reason);
  if (answer == nullptr) return false;
  readTimes(answer, to);
  to.bytes = der;
  return true;
}

bool readStapleOf(X509* leaf, const std::string& der, OcspPolicy policy, OcspStaple& to, std::string& reason) {
  if (der.empty()) {
    if (isMustStaple(leaf)) reason = "OCSP response is required for must-staple certificate";
    else if (policy == OcspPolicy::MustStaple) reason = "Required OCSP response is missing from TLS context";
    return reason.empty();
  }
  BasicHandle basic;
  const OCSP_SINGLERESP* answer = readOne(der, basic, reason);
  if (answer == nullptr) return false;
  if (!isAbout(answer, leaf)) {
    reason = "OCSP response does not match its TLS certificate";
    return false;
  }
  readTimes(answer, to);
  to.bytes = der;
  return true;
}

bool isMustStaple(X509* leaf) {
  const std::unique_ptr<TLS_FEATURE, TlsFree<TLS_FEATURE_free>> features(
      static_cast<TLS_FEATURE*>(X509_get_ext_d2i(leaf, NID_tlsfeature, nullptr, nullptr)));
  ERR_clear_error();
  for (int i = 0; features != nullptr && i < sk_ASN1_INTEGER_num(features.get()); ++i) {
    if (ASN1_INTEGER_get(sk_ASN1_INTEGER_value(features.get(), i)) == TLSEXT_TYPE_status_request) return true;
  }
  return false;
}

TlsStaple decideStaple(const OcspStaple& staple, OcspPolicy policy) {
  if (!staple.bytes.empty() && staple.nextUpdate >= static_cast<int64_t>(time(nullptr))) return TlsStaple::Sent;
  const bool isRefused = policy == OcspPolicy::MustStaple || (policy == OcspPolicy::Strict && !staple.bytes.empty());
  return isRefused ? TlsStaple::Failed : TlsStaple::Omitted;
}

}  // namespace baton
