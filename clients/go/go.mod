module rota

go 1.19
