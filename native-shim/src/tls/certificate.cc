#include "tls/certificate.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>

#include <string_view>

namespace baton {
namespace {

template <typename Digest>
std::string digestOf(Digest digest) {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  return digest(bytes, &length) == 1 ? std::string(reinterpret_cast<char*>(bytes), length) : std::string();
}

std::string publicKeyDigest(X509* certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (length <= 0) return "";
  std::string sum = digestOf([&](unsigned char* to, unsigned* size) {
    return EVP_Digest(der, static_cast<size_t>(length), to, size, EVP_sha256(), nullptr);
  });
  OPENSSL_free(der);
  return sum;
}

std::string bytesOf(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)), static_cast<size_t>(ASN1_STRING_length(string))};
}

std::string oidText(const ASN1_OBJECT* object) {
  char oid[128];
  const int length = OBJ_obj2txt(oid, sizeof oid, object, 1);
  return length > 0 && static_cast<size_t>(length) < sizeof oid ? std::string(oid, static_cast<size_t>(length)) : "";
}

void addOtherName(const OTHERNAME* other, CertificateFacts::Name& to) {
  to.oid = oidText(other->type_id);
  switch (other->value->type) {
    case V_ASN1_UTF8STRING:
    case V_ASN1_IA5STRING:
    case V_ASN1_PRINTABLESTRING:
    case V_ASN1_T61STRING:
    case V_ASN1_VISIBLESTRING:
    case V_ASN1_OCTET_STRING:
      to.text = bytesOf(other->value->value.asn1_string);
      break;
    default:
      break;
  }
}

std::vector<CertificateFacts::Name> namesOf(X509* certificate) {
  std::vector<CertificateFacts::Name> found;
  const std::unique_ptr<GENERAL_NAMES, TlsFree<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    CertificateFacts::Name fact{name->type, "", ""};
    if (name->type == GEN_DNS || name->type == GEN_URI || name->type == GEN_EMAIL) fact.text = bytesOf(name->d.ia5);
    else if (name->type == GEN_IPADD) fact.text = bytesOf(name->d.iPAddress);
    else if (name->type == GEN_OTHERNAME) addOtherName(name->d.otherName, fact);
    else continue;
    found.push_back(std::move(fact));
  }
  return found;
}

}  // namespace

CertificateHandle readDer(const uint8_t* der, size_t length) {
  const unsigned char* at = der;
  CertificateHandle read(d2i_X509(nullptr, &at, static_cast<long>(length)));
  ERR_clear_error();
  return read != nullptr && at == der + length ? std::move(read) : nullptr;
}

std::string toDer(X509* certificate) {
  unsigned char* der = nullptr;
  const int length = i2d_X509(certificate, &der);
  if (length <= 0) return "";
  std::string bytes(reinterpret_cast<char*>(der), static_cast<size_t>(length));
  OPENSSL_free(der);
  return bytes;
}

CertificateFacts describe(X509* certificate) {
  CertificateFacts facts;
  facts.sha256 =
      digestOf([&](unsigned char* to, unsigned* size) { return X509_digest(certificate, EVP_sha256(), to, size); });
  facts.publicKeySha256 = publicKeyDigest(certificate);
  facts.names = namesOf(certificate);
  ERR_clear_error();
  return facts;
}

}  // namespace baton
