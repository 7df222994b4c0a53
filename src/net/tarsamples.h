/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that others made, for tests: what is not zero of them, and where. */
#pragma once

#include <stddef.h>

struct tar_run {
    size_t at, n;
    const char *bytes;
};

/* tar --format=gnu -c ./d/ */
static const struct tar_run sample_gnu[] = {
    {0, 4, "./d/"},
    {100, 57, "0000755\0000001750\0000001750\00000000000000\00014524770400\000010417\000 5"},
    {257, 13, "ustar  \000agent"},
    {297, 5, "agent"},
    {512, 8, "./d/file"},
    {612, 57, "0000640\0000001750\0000001750\00000000000006\00014524770400\000011251\000 0"},
    {769, 13, "ustar  \000agent"},
    {809, 5, "agent"},
    {1024, 6, "hello\n"},
    {1536, 8, "./d/link"},
    {1636, 61, "0000777\0000001750\0000001750\00000000000000\00014524770400\000012136\000 2file"},
    {1793, 13, "ustar  \000agent"},
    {1833, 5, "agent"},
    {2048, 13, "././@LongLink"},
    {2148, 57, "0000644\0000000000\0000000000\00000000000152\00000000000000\000011600\000 K"},
    {2305, 12, "ustar  \000root"},
    {2345, 4, "root"},
    {2560, 105, "ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt"},
    {3072, 7, "./d/far"},
    {3172, 170,
     "0000777\0000001750\0000001750\00000000000000\00014524770400\000037631\000 "
     "2ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttustar  \000agent"},
    {3369, 5, "agent"},
    {3584, 13, "././@LongLink"},
    {3684, 57, "0000644\0000000000\0000000000\00000000000163\00000000000000\000011603\000 L"},
    {3841, 12, "ustar  \000root"},
    {3881, 4, "root"},
    {4096, 114, "./d/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"},
    {4608, 157,
     "./d/"
     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn0000644\0000001750\0000001750\0000000"
     "0000001\00014524770400\000035110\000 0"},
    {4865, 13, "ustar  \000agent"},
    {4905, 5, "agent"},
    {5120, 1, "x"},
};

/* tar --format=pax -c ./d */
static const struct tar_run sample_pax[] = {
    {0, 14, "./PaxHeaders/d"},
    {100, 57, "0000644\0000000000\0000000000\00000000000074\00014524770400\000010447\000 x"},
    {257, 8, "ustar\00000"},
    {512, 60, "30 atime=1794781917.483809718\n30 ctime=1794781917.479809718\n"},
    {1024, 4, "./d/"},
    {1124, 57, "0000755\0000001750\0000001750\00000000000000\00014524770400\000011717\000 5"},
    {1281, 13, "ustar\00000agent"},
    {1321, 5, "agent"},
    {1353, 15, "0000000\0000000000"},
    {1536, 19, "./d/PaxHeaders/file"},
    {1636, 57, "0000644\0000000000\0000000000\00000000000122\00014524770400\000011360\000 x"},
    {1793, 8, "ustar\00000"},
    {2048, 82, "22 mtime=1700000000.5\n30 atime=1794781917.483809718\n30 ctime=1794781917.475809718\n"},
    {2560, 8, "./d/file"},
    {2660, 57, "0000640\0000001750\0000001750\00000000000006\00014524770400\000012551\000 0"},
    {2817, 13, "ustar\00000agent"},
    {2857, 5, "agent"},
    {2889, 15, "0000000\0000000000"},
    {3072, 6, "hello\n"},
    {3584, 19, "./d/PaxHeaders/link"},
    {3684, 57, "0000644\0000000000\0000000000\00000000000074\00014524770400\000011404\000 x"},
    {3841, 8, "ustar\00000"},
    {4096, 60, "30 atime=1794781917.483809718\n30 ctime=1794781917.475809718\n"},
    {4608, 8, "./d/link"},
    {4708, 61, "0000777\0000001750\0000001750\00000000000000\00014524770400\000013436\000 2file"},
    {4865, 13, "ustar\00000agent"},
    {4905, 5, "agent"},
    {4937, 15, "0000000\0000000000"},
    {5120, 18, "./d/PaxHeaders/far"},
    {5220, 57, "0000644\0000000000\0000000000\00000000000263\00014524770400\000011217\000 x"},
    {5377, 8, "ustar\00000"},
    {5632, 179,
     "119 linkpath=ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt\n30 "
     "atime=1794781917.483809718\n30 ctime=1794781917.475809718\n"},
    {6144, 7, "./d/far"},
    {6244, 170,
     "0000777\0000001750\0000001750\00000000000000\00014524770400\000041131\000 "
     "2ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttustar\00000agent"},
    {6441, 5, "agent"},
    {6473, 15, "0000000\0000000000"},
    {6656, 157,
     "./d/PaxHeaders/"
     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn0000644\0000000000\0000000000\00000000000316\000"
     "14524770400\000032733\000 x"},
    {6913, 8, "ustar\00000"},
    {7168, 206,
     "124 path=./d/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\n22 "
     "mtime=1700000000.5\n30 atime=1794781917.483809718\n30 ctime=1794781917.475809718\n"},
    {7680, 157,
     "./d/"
     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn0000644\0000001750\0000001750\0000000"
     "0000001\00014524770400\000036410\000 0"},
    {7937, 13, "ustar\00000agent"},
    {7977, 5, "agent"},
    {8009, 15, "0000000\0000000000"},
    {8192, 1, "x"},
};

/* git archive --prefix=r/ HEAD */
static const struct tar_run sample_git[] = {
    {0, 17, "pax_global_header"},
    {100, 57, "0000666\0000000000\0000000000\00000000000064\00015276431335\0000014523\000g"},
    {257, 12, "ustar\00000root"},
    {297, 4, "root"},
    {329, 15, "0000000\0000000000"},
    {512, 52, "52 comment=376adc5e8d0f7bb68b1a75c319b61ee8a3a3e908\n"},
    {1024, 2, "r/"},
    {1124, 57, "0000775\0000000000\0000000000\00000000000000\00015276431335\0000011330\0005"},
    {1281, 12, "ustar\00000root"},
    {1321, 4, "root"},
    {1353, 15, "0000000\0000000000"},
    {1536, 4, "r/d/"},
    {1636, 57, "0000775\0000000000\0000000000\00000000000000\00015276431335\0000011553\0005"},
    {1793, 12, "ustar\00000root"},
    {1833, 4, "root"},
    {1865, 15, "0000000\0000000000"},
    {2048, 50, "28dc621b5bba3b00820c3ff22f72d797df2dc90b.paxheader"},
    {2148, 57, "0000666\0000000000\0000000000\00000000000167\00015276431335\0000020652\000x"},
    {2305, 12, "ustar\00000root"},
    {2345, 4, "root"},
    {2377, 15, "0000000\0000000000"},
    {2560, 119, "119 linkpath=ttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt\n"},
    {3072, 7, "r/d/far"},
    {3172, 111,
     "0000777\0000000000\0000000000\00000000000000\00015276431335\0000022443\0002see 28dc621b5bba3b00820c3ff22f72d797df2dc90b.paxheader"},
    {3329, 12, "ustar\00000root"},
    {3369, 4, "root"},
    {3401, 15, "0000000\0000000000"},
    {3584, 8, "r/d/file"},
    {3684, 57, "0000664\0000000000\0000000000\00000000000006\00015276431335\0000012411\0000"},
    {3841, 12, "ustar\00000root"},
    {3881, 4, "root"},
    {3913, 15, "0000000\0000000000"},
    {4096, 6, "hello\n"},
    {4608, 8, "r/d/link"},
    {4708, 61, "0000777\0000000000\0000000000\00000000000000\00015276431335\0000013270\0002file"},
    {4865, 12, "ustar\00000root"},
    {4905, 4, "root"},
    {4937, 15, "0000000\0000000000"},
    {5120, 50, "c1b0730e0133447badcfd47fd144e254807b06e1.paxheader"},
    {5220, 57, "0000666\0000000000\0000000000\00000000000174\00015276431335\0000020417\000x"},
    {5377, 12, "ustar\00000root"},
    {5417, 4, "root"},
    {5449, 15, "0000000\0000000000"},
    {5632, 124,
     "124 path=r/d/nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\n"},
    {6144, 45, "c1b0730e0133447badcfd47fd144e254807b06e1.data"},
    {6244, 57, "0000664\0000000000\0000000000\00000000000001\00015276431335\0000017242\0000"},
    {6401, 12, "ustar\00000root"},
    {6441, 4, "root"},
    {6473, 15, "0000000\0000000000"},
    {6656, 1, "x"},
};

static const struct tar_sample {
    const struct tar_run *runs;
    size_t count;
} samples[] = {
    {sample_gnu, sizeof(sample_gnu) / sizeof(sample_gnu[0])},
    {sample_pax, sizeof(sample_pax) / sizeof(sample_pax[0])},
    {sample_git, sizeof(sample_git) / sizeof(sample_git[0])},
};
#define SAMPLE_BYTES 10240u
