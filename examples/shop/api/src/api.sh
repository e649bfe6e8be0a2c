#!/bin/sh
echo "the api of the shop, built for @MODE@"
