#!/bin/sh
# Makes the certificates of the TLS tests anew. Nobody outside these tests trusts them.
set -eu
cd "$(dirname "$0")"
key() { openssl ecparam -name prime256v1 -genkey -noout | openssl pkcs8 -topk8 -nocrypt -out "$1"; }
signed() { # NAME EXTENSION
    key "$1.key"
    echo "$2" >extension
    openssl req -new -key "$1.key" -subj "/CN=$1" |
        openssl x509 -req -CA authority.pem -CAkey authority.key -days 36500 -out "$1.pem" \
            -extfile extension
}
key authority.key
openssl req -x509 -key authority.key -days 36500 -subj "/CN=test authority" -out authority.pem
signed server "subjectAltName=DNS:localhost,IP:127.0.0.1"
signed elsewhere "subjectAltName=DNS:elsewhere.test"
signed client "extendedKeyUsage=clientAuth"
openssl x509 -in client.pem -outform der -out client.der
openssl pkcs8 -in client.key -topk8 -nocrypt -outform der -out client.key.der
rm -f authority.key extension *.srl
